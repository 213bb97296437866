"""Cancelling: a document, or all open ones of a batch, end where they stand.

The row of a document is locked before its chunks are touched, as whoever publishes a chunk does
it: of the two, one comes first and the other finds its row changed. What was read stays in the
ledger, so that a retry goes on from there.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ScalarSelect, exists, func, select, update
from sqlalchemy.orm import Session

from db import batches
from db.documents import get_locked
from db.models import Batch, Chunk, Document, Page
from db.states import (
    OPEN_CHUNK_STATES,
    OPEN_DOCUMENT_STATES,
    BatchState,
    ChunkState,
    DocumentState,
    PageState,
)

CODE = "cancelled"


def cancel(session: Session, document_id: UUID, *, tenant: str) -> DocumentState:
    """End an open document of this tenant; return the state that it was in.

    A document that was final is not changed.

    Raises:
        RowNotFoundError: there is none.
    """
    document = get_locked(session, document_id, tenant=tenant)
    state = DocumentState(document.state)
    if state in OPEN_DOCUMENT_STATES:
        _cancel_locked(session, [document_id])
    return state


def start_batch(session: Session, batch_id: UUID, *, tenant: str) -> None:
    """Let a batch of this tenant take no more documents; its open ones end step by step.

    Once more it ends those that were retried since. Documents that are being added are waited for.

    Raises:
        RowNotFoundError: there is none.
    """
    batches.get(session, batch_id, tenant=tenant)
    batches.lock_alone(session, batch_id)
    session.execute(
        update(Batch)
        .where(Batch.id == batch_id)
        .values(state=BatchState.CANCELLED, finished_at=None, retry_requested_at=None)
        .execution_options(synchronize_session=False)
    )


def unfinished_batches(session: Session, *, limit: int) -> Sequence[UUID]:
    """Return batches that were cancelled and may still have open documents, oldest first."""
    return session.scalars(
        select(Batch.id)
        .where(Batch.state == BatchState.CANCELLED, Batch.finished_at.is_(None))
        .order_by(Batch.id)
        .limit(limit)
    ).all()


def cancel_some(session: Session, batch_id: UUID, *, after: UUID | None, limit: int) -> UUID | None:
    """End open documents of a cancelled batch, up to ``limit`` in the order of their ids.

    Fewer where they are large, so that no step takes longer than a statement may. A document that
    somebody is changing is passed over, and so found by the next walk.

    Args:
        session: an open transaction.
        batch_id: of a batch for which ``start_batch`` was called.
        after: where the last step of this walk ended; None begins one.
        limit: most documents of this step.

    Returns:
        Where the next step goes on; None: the walk is over.
    """
    query = select(Document.id, Document.page_count).where(
        Document.batch_id == batch_id, Document.state.in_(sorted(OPEN_DOCUMENT_STATES))
    )
    if after is not None:
        query = query.where(Document.id > after)
    found = session.execute(
        query.order_by(Document.id).limit(limit).with_for_update(skip_locked=True, key_share=True)
    ).all()
    count = batches.count_for_one_step([page_count for _, page_count in found])
    document_ids = [document_id for document_id, _ in found[:count]]
    if document_ids:
        _cancel_locked(session, document_ids)
    is_over = len(document_ids) == len(found) < limit
    return None if is_over else document_ids[-1]


def finish_batch(session: Session, batch_id: UUID) -> bool:
    """Note that no document of a cancelled batch is open any more; False: one still is."""
    batches.lock_alone(session, batch_id)  # what is asked next sees what was retried before
    is_open = exists().where(
        Document.batch_id == batch_id, Document.state.in_(sorted(OPEN_DOCUMENT_STATES))
    )
    row = session.execute(
        update(Batch)
        .where(Batch.id == batch_id, Batch.state == BatchState.CANCELLED, ~is_open)
        .values(finished_at=func.now())
        .returning(Batch.id)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    return row is not None


def cancel_chunks(session: Session, document_ids: Sequence[UUID]) -> None:
    """End the chunks that are open of documents whose rows the transaction has locked."""
    session.execute(
        update(Chunk)
        .where(Chunk.document_id.in_(document_ids), Chunk.state.in_(sorted(OPEN_CHUNK_STATES)))
        .values(
            state=ChunkState.CANCELLED,
            dispatch_after=None,
            lease_expires_at=None,
            worker=None,
        )
    )


def _cancel_locked(session: Session, document_ids: Sequence[UUID]) -> None:
    cancel_chunks(session, document_ids)
    session.execute(
        update(Document)
        .where(Document.id.in_(document_ids))
        .values(
            state=DocumentState.CANCELLED,
            error_code=CODE,
            attempt=Document.attempt + 1,  # whoever works on it finds its token outdated
            pages_ok=_pages(PageState.OK),
            pages_failed=_pages(PageState.FAILED),
            pages_skipped=_pages(PageState.SKIPPED),
            finished_at=func.now(),
            dispatch_after=None,
            lease_expires_at=None,
            worker=None,
        )
        .execution_options(synchronize_session=False)
    )


def _pages(state: PageState) -> ScalarSelect[int]:
    return (
        select(func.count())
        .select_from(Page)
        .where(Page.document_id == Document.id, Page.state == state)
        .scalar_subquery()
    )
