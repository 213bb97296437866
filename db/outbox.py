"""Rows that stand still: what has to be sent (again), found and marked in one statement.

Two sweeps may run at once: a row that one of them has locked is skipped by the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from db.models import Chunk, Document
from db.states import DocumentState, Priority


class Work(StrEnum):
    """What a due row is waiting for."""

    SPLIT = "split"
    RECOGNIZE = "recognize"
    ASSEMBLE = "assemble"


@dataclass(frozen=True, slots=True)
class DueWork:
    """A row that somebody has to be told about again; ``id`` is a document's or a chunk's.

    ``attempts`` are the claims that count towards the cap; ``priority`` is the document's.
    """

    work: Work
    id: UUID
    document_id: UUID
    generation: int
    attempts: int
    priority: Priority
    page_start: int = 0
    page_stop: int = 0


def take_due_documents(session: Session, *, limit: int, backoff_s: float) -> list[DueWork]:
    """Mark up to ``limit`` due documents as sent once more, and return them.

    The next look at each is put off by ``backoff_s`` seconds, doubled with every delivery up to
    64 times that: a sweep that re-sends at a fixed pace floods a queue that is merely long.
    """
    due = (
        select(Document.id)
        .where(Document.dispatch_after <= func.now())
        .order_by(Document.dispatch_after)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).scalar_subquery()
    rows = session.execute(
        update(Document)
        .where(Document.id.in_(due))
        .values(
            deliveries=Document.deliveries + 1,
            dispatch_after=func.now()
            + timedelta(seconds=backoff_s) * func.power(2, func.least(Document.deliveries, 6)),
        )
        .returning(
            Document.id,
            Document.state,
            Document.generation,
            Document.priority,
            (Document.attempt - Document.excused).label("attempts"),
        )
    ).all()
    return [
        DueWork(
            work=Work.SPLIT if row.state in _SPLIT_STATES else Work.ASSEMBLE,
            id=row.id,
            document_id=row.id,
            generation=row.generation,
            attempts=row.attempts,
            priority=Priority(row.priority),
        )
        for row in rows
    ]


def take_due_chunks(session: Session, *, limit: int, backoff_s: float) -> list[DueWork]:
    """Mark up to ``limit`` due chunks as sent once more, and return them; see documents."""
    due = (
        select(Chunk.id)
        .where(Chunk.dispatch_after <= func.now())
        .order_by(Chunk.dispatch_after)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).scalar_subquery()
    priority_of_chunk = (
        select(Document.priority).where(Document.id == Chunk.document_id).scalar_subquery()
    )
    rows = session.execute(
        update(Chunk)
        .where(Chunk.id.in_(due))
        .values(
            deliveries=Chunk.deliveries + 1,
            dispatch_after=func.now()
            + timedelta(seconds=backoff_s) * func.power(2, func.least(Chunk.deliveries, 6)),
        )
        .returning(
            Chunk.id,
            Chunk.document_id,
            Chunk.generation,
            priority_of_chunk.label("priority"),
            (Chunk.attempt - Chunk.excused).label("attempts"),
            Chunk.page_start,
            Chunk.page_stop,
        )
    ).all()
    return [
        DueWork(
            work=Work.RECOGNIZE,
            id=row.id,
            document_id=row.document_id,
            generation=row.generation,
            attempts=row.attempts,
            priority=Priority(row.priority),
            page_start=row.page_start,
            page_stop=row.page_stop,
        )
        for row in rows
    ]


def put_back_unsent(session: Session, unsent: Sequence[DueWork], *, delay_s: float) -> None:
    """Undo the marks of work that could not be sent, so that the broker's fault costs no back-off.

    A row that somebody claimed meanwhile is left alone.
    """
    for table, is_chunk in ((Document, False), (Chunk, True)):
        ids = [work.id for work in unsent if (work.work is Work.RECOGNIZE) is is_chunk]
        session.execute(
            update(table)
            .where(
                table.id.in_(ids),
                table.dispatch_after.is_not(None),
                or_(table.lease_expires_at.is_(None), table.lease_expires_at < func.now()),
            )
            .values(
                deliveries=table.deliveries - 1,
                dispatch_after=func.now() + timedelta(seconds=delay_s),
            )
        )


_SPLIT_STATES = frozenset({DocumentState.QUEUED, DocumentState.SPLITTING})
