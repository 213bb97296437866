"""Retrying a document that has ended: a new generation reads the pages that are not read yet.

What was read keeps its place in the ledger and in storage. Messages, chords and workers of the
generation before find its chunks final and another generation in the row, and change nothing.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db import admission, batches, documents, planned_chunks
from db.cancelling import cancel_chunks
from db.models import Chunk, Document, Page
from db.states import (
    OPEN_DOCUMENT_STATES,
    DocumentState,
    PageState,
    require_document_move,
)

# A page that was left out on request is no failure.
_NOT_READ = (PageState.QUEUED, PageState.FAILED)


class Retry(StrEnum):
    """What came of asking for a retry."""

    STARTED = "started"
    STILL_OPEN = "still_open"
    NOTHING_TO_RETRY = "nothing_to_retry"
    BATCH_IS_BEING_CANCELLED = "batch_is_being_cancelled"


def retry(session: Session, document_id: UUID, *, tenant: str) -> Retry:
    """Start a document of this tenant over, from its pages or, where it has none, from its split.

    Its result, if it has one, stays until the new one takes its place.

    Raises:
        RowNotFoundError: there is none.
    """
    batch_id = documents.get(session, document_id, tenant=tenant).batch_id
    if batch_id is not None and batches.is_being_cancelled(session, batch_id):
        return Retry.BATCH_IS_BEING_CANCELLED
    document = documents.get_locked(session, document_id, tenant=tenant)
    if document.state in OPEN_DOCUMENT_STATES:
        return Retry.STILL_OPEN
    if document.state == DocumentState.SUCCEEDED:
        return Retry.NOTHING_TO_RETRY
    start_over(session, document)
    return Retry.STARTED


def start_over(session: Session, document: Document) -> None:
    """Start over a final document that the transaction has locked, and of which not all is read."""
    cancel_chunks(session, [document.id])  # final documents have none open, or should not
    if document.page_count is None:
        _start_over(session, document, state=DocumentState.QUEUED, dispatch_after=func.now())
    else:
        _read_the_rest(session, document)


def _read_the_rest(session: Session, document: Document) -> None:
    # As many pages as the chunks of the split had: it knew the device that reads them.
    chunk_pages = session.scalar(
        select(func.max(Chunk.page_stop - Chunk.page_start)).where(Chunk.document_id == document.id)
    )
    not_read = (Page.document_id == document.id, Page.state.in_(_NOT_READ))
    indexes = session.scalars(
        select(Page.page_index).where(*not_read).order_by(Page.page_index)
    ).all()
    planned = planned_chunks.plan_chunks(indexes, chunk_pages=chunk_pages or 1)
    # Without a page to read it was the assembly that failed or was cancelled.
    dispatch_after = None if planned else func.now()
    _start_over(
        session,
        document,
        state=DocumentState.RECOGNIZING,
        dispatch_after=dispatch_after,
        # A page of ten thousand must not count as all of them against what may be open.
        work=admission.pages_to_read(max(len(indexes), 1)),
    )
    session.execute(update(Page).where(*not_read).values(generation=document.generation, **_UNREAD))
    planned_chunks.insert(session, document, planned)


def _start_over(
    session: Session,
    document: Document,
    *,
    state: DocumentState,
    dispatch_after: Any,  # noqa: ANN401 - a time of the database, or none
    work: Mapping[str, Any] | None = None,
) -> None:
    """Move the row to a new generation; ``document`` says afterwards what is in it."""
    is_queued = state is DocumentState.QUEUED
    require_document_move(DocumentState(document.state), state)
    session.execute(
        update(Document)
        .where(Document.id == document.id)
        .values(
            state=state,
            generation=Document.generation + 1,
            by_chord=False,  # the sweep sends its chunks one by one
            excused=Document.attempt,
            deliveries=0,
            dispatch_after=dispatch_after,
            lease_expires_at=None,
            worker=None,
            error_code=None,
            error_detail=None,
            pages_ok=0,  # counted anew when it ends
            pages_failed=0,
            pages_skipped=0,
            pages_cached=0,
            splitting_at=None if is_queued else Document.splitting_at,
            recognizing_at=None if is_queued else func.now(),
            assembling_at=None,
            finished_at=None,
            **(work or {}),
        )
        .execution_options(synchronize_session=False)
    )
    session.refresh(document)


# A page that failed has an object that says so; the next one may have none.
_UNREAD: dict[str, Any] = {
    "state": PageState.QUEUED,
    "attempts": 0,
    **dict.fromkeys((
        "route",
        "result_key",
        "result_start",
        "result_stop",
        "crops_found",
        "crops_kept",
        "line_count",
        "mean_confidence",
        "rotation_deg",
        "durations",
        "model_version",
        "error_code",
        "error_detail",
    )),
    "truncated": False,
}
