"""Retrying a batch: what had ended without being read whole starts over, a few documents at a time.

The row of the batch says that a retry is under way and how far it is, so that whoever dies half-way
is followed by the sweep. Only documents that had ended before the retry was asked for are started:
one that fails once more in the meantime is left as it is.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from db import batches, retrying
from db.models import Batch, Document
from db.retrying import Retry
from db.states import DocumentState

_FAILED = (DocumentState.FAILED, DocumentState.PARTLY_SUCCEEDED)


def request(session: Session, batch_id: UUID, *, tenant: str, cancelled_too: bool) -> Retry:
    """Note that a batch of this tenant is to be retried, unless there is nothing to retry in it.

    Asked for again, it begins anew, and goes on with what was asked for before.

    Raises:
        RowNotFoundError: there is none.
    """
    batch = batches.get(session, batch_id, tenant=tenant)
    if batches.is_being_cancelled(session, batch_id):
        return Retry.BATCH_IS_BEING_CANCELLED
    now = session.scalars(select(func.clock_timestamp())).one()
    if not _is_any(session, batch_id, ended_before=now, cancelled_too=cancelled_too):
        return Retry.NOTHING_TO_RETRY
    session.refresh(batch, with_for_update={"key_share": True})
    is_under_way = batch.retry_requested_at is not None
    batch.retry_cancelled_too = cancelled_too or (is_under_way and batch.retry_cancelled_too)
    batch.retry_requested_at = now
    batch.retry_after = None
    return Retry.STARTED


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

    Fewer where they have many pages, each of which is a row to be changed. 0: nothing is left, or
    others hold what is left. A document that somebody is changing is passed over, and found by
    the next walk.
    """
    # Asked for the lock alone: a cancel waits for this step, and ends the retry.
    batches.is_being_cancelled(session, batch_id)
    batch = session.scalars(
        select(Batch)
        .where(Batch.id == batch_id, Batch.retry_requested_at.is_not(None))
        .with_for_update(skip_locked=True, key_share=True)
    ).one_or_none()
    if batch is None:
        return 0
    assert batch.retry_requested_at is not None  # noqa: S101 - asked for above, for the type checker
    conditions = _to_retry(
        batch_id,
        ended_before=batch.retry_requested_at,
        cancelled_too=batch.retry_cancelled_too,
    )
    query = select(Document).where(*conditions)
    if batch.retry_after is not None:
        query = query.where(Document.id > batch.retry_after)
    found = session.scalars(
        query.order_by(Document.id).limit(limit).with_for_update(skip_locked=True, key_share=True)
    ).all()
    chosen = found[: batches.count_for_one_step([document.page_count for document in found])]
    for document in chosen:
        retrying.start_over(session, document)
    if len(chosen) < len(found) or len(found) == limit:
        batch.retry_after = chosen[-1].id
    else:
        batch.retry_after = None
        if not session.scalar(select(exists().where(*conditions))):  # else some were passed over
            batch.retry_requested_at = None
    return len(chosen)


def _is_any(
    session: Session, batch_id: UUID, *, ended_before: datetime, cancelled_too: bool
) -> bool:
    conditions = _to_retry(batch_id, ended_before=ended_before, cancelled_too=cancelled_too)
    return bool(session.scalar(select(exists().where(*conditions))))


def _to_retry(
    batch_id: UUID, *, ended_before: datetime, cancelled_too: bool
) -> tuple[ColumnElement[bool], ...]:
    states = [*_FAILED, *([DocumentState.CANCELLED] if cancelled_too else [])]
    return (
        Document.batch_id == batch_id,
        Document.state.in_(states),
        Document.finished_at < ended_before,
    )
