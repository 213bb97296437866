"""Retrying a batch: what had ended without being read whole starts over, a few documents at a time.

The row of the batch says that a retry is under way and how far it is, so that whoever dies half-way
is followed by the sweep. Only documents that had ended before the retry was asked for are started:
one that fails once more in the meantime is left as it is.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, select, update
from sqlalchemy.orm import Session

from db import batches, retrying
from db.models import Batch, Document
from db.retrying import Retry
from db.states import DocumentState

_FAILED = (DocumentState.FAILED, DocumentState.PARTLY_SUCCEEDED)


def request(session: Session, batch_id: UUID, *, tenant: str, cancelled_too: bool) -> Retry:
    """Note that a batch of this tenant is to be retried, unless there is nothing to retry in it.

    Asked for again, it begins anew.

    Raises:
        RowNotFoundError: there is none.
    """
    batch = batches.get(session, batch_id, tenant=tenant)
    if batches.is_being_cancelled(session, batch_id):
        return Retry.BATCH_IS_BEING_CANCELLED
    batch.retry_requested_at = func.clock_timestamp()
    batch.retry_after = None
    batch.retry_cancelled_too = cancelled_too
    session.flush()
    session.refresh(batch)
    if session.scalar(select(exists().where(*_to_retry(batch)))):
        return Retry.STARTED
    batch.retry_requested_at = None
    return Retry.NOTHING_TO_RETRY


def unfinished(session: Session, *, limit: int) -> Sequence[UUID]:
    """Return batches with a retry that is under way, oldest first."""
    return session.scalars(
        select(Batch.id)
        .where(Batch.retry_requested_at.is_not(None))
        .order_by(Batch.id)
        .limit(limit)
    ).all()


def retry_some(session: Session, batch_id: UUID, *, limit: int) -> int:
    """Start over up to ``limit`` documents of a batch that is retried; return how many.

    0: nothing is left, or others hold what is left. A document that somebody is changing is passed
    over, and found by the next walk.
    """
    batches.is_being_cancelled(
        session, batch_id
    )  # a cancel waits for this step, and ends the retry
    batch = session.scalars(
        select(Batch)
        .where(Batch.id == batch_id, Batch.retry_requested_at.is_not(None))
        .with_for_update(skip_locked=True, key_share=True)
    ).one_or_none()
    if batch is None:
        return 0
    query = select(Document).where(*_to_retry(batch))
    if batch.retry_after is not None:
        query = query.where(Document.id > batch.retry_after)
    found = session.scalars(
        query.order_by(Document.id).limit(limit).with_for_update(skip_locked=True, key_share=True)
    ).all()
    for document in found:
        retrying.start_over(session, document)
    values: dict[str, object]
    if len(found) == limit:
        values = {"retry_after": found[-1].id}
    elif session.scalar(select(exists().where(*_to_retry(batch)))):
        values = {"retry_after": None}  # those that were passed over
    else:
        values = {"retry_after": None, "retry_requested_at": None}
    session.execute(
        update(Batch)
        .where(Batch.id == batch_id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    return len(found)


def _to_retry(batch: Batch) -> tuple[ColumnElement[bool], ...]:
    states = [*_FAILED, *([DocumentState.CANCELLED] if batch.retry_cancelled_too else [])]
    return (
        Document.batch_id == batch.id,
        Document.state.in_(states),
        Document.finished_at < batch.retry_requested_at,
    )
