"""Rows that stand still: what has to be sent (again), found and marked in one statement.

Two sweeps may run at once: a row that one of them has locked is skipped by the other.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.models import Chunk, Document
from db.states import ChunkState, DocumentState


class Work(StrEnum):
    """What a due row is waiting for."""

    SPLIT = "split"
    RECOGNIZE = "recognize"
    ASSEMBLE = "assemble"


@dataclass(frozen=True, slots=True)
class DueWork:
    """A row that somebody has to be told about again; ``id`` is a document's or a chunk's.

    ``attempts`` are the claims that count towards the cap.
    """

    work: Work
    id: UUID
    document_id: UUID
    generation: int
    deliveries: int
    attempts: int
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
            Document.deliveries,
            (Document.attempt - Document.excused).label("attempts"),
        )
    ).all()
    return [
        DueWork(
            work=Work.SPLIT if row.state in _SPLIT_STATES else Work.ASSEMBLE,
            id=row.id,
            document_id=row.id,
            generation=row.generation,
            deliveries=row.deliveries,
            attempts=row.attempts,
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
            Chunk.deliveries,
            (Chunk.attempt - Chunk.excused).label("attempts"),
            Chunk.page_start,
            Chunk.page_stop,
        )
    ).all()
    return [DueWork(work=Work.RECOGNIZE, **row._asdict()) for row in rows]


def count_open(session: Session) -> dict[str, int]:
    """Count the documents and chunks that are not final, by state."""
    documents = session.execute(
        select(Document.state, func.count())
        .where(Document.state.in_(_OPEN_DOCUMENT_STATES))
        .group_by(Document.state)
    ).all()
    chunks = session.execute(
        select(Chunk.state, func.count())
        .where(Chunk.state.in_([ChunkState.QUEUED, ChunkState.RUNNING]))
        .group_by(Chunk.state)
    ).all()
    return {f"documents_{row[0]}": row[1] for row in documents} | {
        f"chunks_{row[0]}": row[1] for row in chunks
    }


_SPLIT_STATES = frozenset({DocumentState.QUEUED, DocumentState.SPLITTING})
_OPEN_DOCUMENT_STATES = (*_SPLIT_STATES, DocumentState.RECOGNIZING, DocumentState.ASSEMBLING)
