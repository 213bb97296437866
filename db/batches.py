"""Batches, and the counts that are computed from their documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, select
from sqlalchemy.orm import Session

from db import listed
from db.errors import RowNotFoundError
from db.listed import Listed
from db.models import Batch, Document
from db.states import CLOSED_BATCH_STATES, FINAL_DOCUMENT_STATES, BatchState, DocumentState

# Of the documents of one step, short of its last one: their chunks are rows to be changed, and
# their pages rows to be counted.
_MOST_PAGES_PER_STEP = 20_000


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """How many documents of a batch stand where, and their pages.

    ``listed`` is what was found to fill it with; None: nobody was asked to look.
    """

    documents: Mapping[DocumentState, int]
    pages: int
    pages_ok: int
    pages_failed: int
    listed: Listed | None = None

    @property
    def total(self) -> int:
        return sum(self.documents.values())

    @property
    def final(self) -> int:
        return sum(self.documents.get(state, 0) for state in FINAL_DOCUMENT_STATES)


def insert(session: Session, batch: Batch) -> None:
    """Add a batch."""
    session.add(batch)
    session.flush()


def get(session: Session, batch_id: UUID, *, tenant: str) -> Batch:
    """Return a batch of this tenant.

    Raises:
        RowNotFoundError: there is none.
    """
    batch = session.get(Batch, batch_id)
    if batch is None or batch.tenant != tenant:
        raise RowNotFoundError(f"no batch {batch_id}")
    return batch


def find_by_idempotency_key(session: Session, *, tenant: str, key: str) -> Batch | None:
    """Return the batch that was created under this key before, if any."""
    return session.scalars(
        select(Batch).where(Batch.tenant == tenant, Batch.idempotency_key == key)
    ).one_or_none()


def count_for_one_step(page_counts: Sequence[int | None]) -> int:
    """Return how many documents, of these pages, are changed together, so that it ends in time.

    The first one is, however large it is. None: nobody knows its pages, and it has no rows yet.
    """
    before = accumulate((each or 0 for each in page_counts), initial=0)
    return sum(pages < _MOST_PAGES_PER_STEP for pages, _ in zip(before, page_counts, strict=False))


def list_page(
    session: Session, *, tenant: str, limit: int, before: UUID | None = None
) -> Sequence[Batch]:
    """Return batches newest first; ids are time-ordered, so ``before`` is a stable cursor."""
    query = select(Batch).where(Batch.tenant == tenant)
    if before is not None:
        query = query.where(Batch.id < before)
    return session.scalars(query.order_by(Batch.id.desc()).limit(limit)).all()


def takes_documents(session: Session, batch_id: UUID) -> bool:
    """Say whether a document may be added to a batch, in this transaction and for all of it."""
    return _locked(session, batch_id).state not in CLOSED_BATCH_STATES


def is_cancelled(session: Session, batch_id: UUID) -> bool:
    """Say whether a batch was cancelled, in this transaction and for all of it."""
    state: str = _locked(session, batch_id).state
    return state == BatchState.CANCELLED


def is_being_cancelled(session: Session, batch_id: UUID) -> bool:
    """Say whether a batch was cancelled and some of its documents may still be open.

    The answer stays true to the end of the transaction: cancelling waits for it.
    """
    batch = _locked(session, batch_id)
    return batch.state == BatchState.CANCELLED and batch.finished_at is None


def count(session: Session, batch_id: UUID) -> BatchCounts:
    """Count the documents of a batch by state, and their pages."""
    return count_each(session, [batch_id])[batch_id]


def count_each(session: Session, batch_ids: Sequence[UUID]) -> Mapping[UUID, BatchCounts]:
    """Count the documents of batches by state, and their pages; reads all of these documents."""
    rows = session.execute(
        select(
            Document.batch_id,
            Document.state,
            func.count(),
            func.coalesce(func.sum(Document.page_count), 0),
            func.coalesce(func.sum(Document.pages_ok), 0),
            func.coalesce(func.sum(Document.pages_failed), 0),
        )
        .where(Document.batch_id.in_(batch_ids), Document.state != DocumentState.DELETING)
        .group_by(Document.batch_id, Document.state)
    ).all()
    found = listed.sum_each(session, batch_ids)
    return {
        batch_id: _counts([row[1:] for row in rows if row[0] == batch_id], found.get(batch_id))
        for batch_id in batch_ids
    }


def _counts(rows: Sequence[Sequence[Any]], found: Listed | None) -> BatchCounts:
    return BatchCounts(
        listed=found,
        documents={DocumentState(row[0]): row[1] for row in rows},
        pages=sum(int(row[2] or 0) for row in rows),
        pages_ok=sum(int(row[3]) for row in rows),
        pages_failed=sum(int(row[4]) for row in rows),
    )


def lock_alone(session: Session, batch_id: UUID) -> None:
    """Wait for all transactions that rely on the state of a batch; later ones wait for this one."""
    session.execute(select(func.pg_advisory_xact_lock(_lock_of(batch_id))))


def _locked(session: Session, batch_id: UUID) -> Row[str, datetime | None]:
    """Read where a batch stands; whoever moves it waits for this transaction.

    Not by a lock of the row: those who share one let each other in for ever, past whoever waits to
    have it alone.
    """
    session.execute(select(func.pg_advisory_xact_lock_shared(_lock_of(batch_id))))
    return session.execute(select(Batch.state, Batch.finished_at).where(Batch.id == batch_id)).one()


def _lock_of(batch_id: UUID) -> ColumnElement[int]:
    return func.hashtextextended(str(batch_id), 0)
