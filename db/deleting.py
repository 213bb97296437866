"""Deleting: a document disappears at once, and its objects and rows for good a little later.

A row in ``deleting`` stands for objects that may be there, so it goes last. It is found by
``dispatch_after`` like everything that somebody has to look at, over the index of rows with
attempts, which it joins with one that no worker makes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import case, delete, func, select, text, update
from sqlalchemy.orm import Session

from db.cancelling import cancel_chunks
from db.documents import get_locked
from db.models import Document, Export
from db.states import DocumentState, ExportState


@dataclass(frozen=True, slots=True)
class Deletion:
    """A document whose objects are to be removed.

    Attributes:
        document_id: its id.
        is_last: whether nobody who worked on it can write any more, so that what is removed from
            now on stays removed.
    """

    document_id: UUID
    is_last: bool


def mark(session: Session, document_id: UUID, *, tenant: str, writers_s: float) -> None:
    """Hide a document of this tenant from everybody, and end its work.

    Args:
        session: an open transaction.
        document_id: its id.
        tenant: whose it has to be.
        writers_s: for how long a worker that is at it may go on writing.

    Raises:
        RowNotFoundError: there is none, or it was deleted already.
    """
    get_locked(session, document_id, tenant=tenant)
    cancel_chunks(session, [document_id])
    # One that has not begun yet begins no more, for the document is gone.
    has_running_exports = (
        select(Export.id)
        .where(Export.document_id == document_id, Export.state == ExportState.RUNNING)
        .exists()
    )
    session.execute(
        update(Document)
        .where(Document.id == document_id)
        .values(
            state=DocumentState.DELETING,
            # Free for a new document: who sends the file again means it.
            idempotency_key=None,
            attempt=Document.attempt + 1,
            deliveries=0,
            dispatch_after=func.now(),
            # Whoever worked on it began before it was final; but an export may be under way still.
            lease_expires_at=case(
                (has_running_exports, func.now()),
                else_=func.coalesce(Document.finished_at, func.now()),
            )
            + timedelta(seconds=writers_s),
            worker=None,
        )
        .execution_options(synchronize_session=False)
    )


def take(session: Session, *, limit: int, backoff_s: float) -> Sequence[Deletion]:
    """Take documents that are to be deleted, the longest due first.

    The next look at each is put off by ``backoff_s`` seconds, doubled with every time up to 64
    times, so that one whose objects cannot be removed now holds up nobody and is never given up.
    """
    rows = session.execute(
        text("""
            WITH due AS MATERIALIZED (
              SELECT id AS due_id FROM documents
              WHERE dispatch_after IS NOT NULL AND attempt > excused
                AND state = 'deleting' AND dispatch_after <= now()
              ORDER BY dispatch_after LIMIT :limit FOR UPDATE SKIP LOCKED
            )
            UPDATE documents
            SET deliveries = deliveries + 1,
                dispatch_after = now()
                  + make_interval(secs => :backoff_s) * power(2, least(deliveries, 6))
            FROM due WHERE id = due.due_id
            RETURNING id, lease_expires_at <= now() AS is_last
        """),
        {"limit": limit, "backoff_s": backoff_s},
    )
    return [Deletion(row.id, row.is_last) for row in rows]


def close(session: Session, deletion: Deletion) -> None:
    """Note that the objects of a document were removed: its rows go, or wait for late writers."""
    is_it = (Document.id == deletion.document_id, Document.state == DocumentState.DELETING)
    if deletion.is_last:
        session.execute(delete(Document).where(*is_it))  # pages and chunks with it
    else:
        session.execute(
            update(Document)
            .where(*is_it)
            .values(dispatch_after=Document.lease_expires_at, deliveries=0)
        )
