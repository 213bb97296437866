"""Cancelling: a document, or all open ones of a batch, end where they stand.

The row of a document is locked before its chunks are touched, as whoever publishes a chunk does
it: of the two, one comes first and the other finds its row changed. What was read stays in the
ledger, so that a retry goes on from there.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ScalarSelect, func, select, update
from sqlalchemy.orm import Session

from db.documents import get_locked
from db.models import Chunk, Document, Page
from db.states import (
    OPEN_CHUNK_STATES,
    OPEN_DOCUMENT_STATES,
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
