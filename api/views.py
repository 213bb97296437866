"""What the API answers, as models that the OpenAPI description is made from."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from api.errors import sentence
from api.ledger import DocumentEntry
from api.upload_form import Priority
from db.batches import BatchCounts
from db.listed import Listed
from db.models import Batch, Document, Page
from db.states import FINAL_DOCUMENT_STATES, BatchState, DocumentState, PageState
from workers.ocr.options import DocumentWarning, OcrOptions
from workers.ocr.page_numbers import page_number


class ErrorView(BaseModel):
    """Why a document or a page failed."""

    code: str = Field(description="The error, for programs; see docs/errors.md for the list.")
    message: str = Field(description="What happened, and what can be done about it.")


class ProgressView(BaseModel):
    """Pages of a document. Once it is known, `pages` = `ok` + `failed` + `skipped` + `left`."""

    pages: int | None = Field(description="All pages; null until the document is split.")
    ok: int = Field(description="Pages that were read.")
    failed: int = Field(description="Pages that could not be read.")
    skipped: int = Field(description="Pages that were left out on request.")
    left: int | None = Field(description="Pages still to be read; null until it is split.")


class TimingsView(BaseModel):
    """When the document reached each state, in UTC; null: it has not, or went another way."""

    created_at: datetime
    splitting_at: datetime | None
    recognizing_at: datetime | None
    assembling_at: datetime | None
    finished_at: datetime | None


class DocumentLinks(BaseModel):
    """Addresses that belong to a document, relative to the API's own."""

    self: str
    pages: str
    result: str | None = Field(description="The result as JSON; null while there is none.")
    text: str | None = Field(description="The result as plain text; null while there is none.")
    batch: str | None


class DocumentView(BaseModel):
    """One document, and where it stands."""

    id: UUID
    batch_id: UUID | None
    state: DocumentState = Field(
        description="`succeeded`, `partly_succeeded`, `failed` and `cancelled` are final."
    )
    filename: str = Field(description="The name of the file, without unsafe characters.")
    media_type: str = Field(
        description="Told from the content of the file; `application/octet-stream` until an "
        "object of a bucket has been read."
    )
    size_bytes: int
    sha256: str | None = Field(
        description="Of the file, in lower-case hexadecimal; null until an object of a bucket has "
        "been read."
    )
    priority: Priority
    external_id: str | None = Field(description="The sender's own id, as it was sent.")
    metadata: dict[str, Any] | None = Field(description="The sender's own, as it was sent.")
    options: dict[str, Any] = Field(description="The options that apply, defaults included.")
    progress: ProgressView
    truncated: bool = Field(
        description="Whether a page had more text lines than are recognized on one page."
    )
    model_version: str | None
    cached: bool = Field(
        description="Whether it was not read itself, because a document of the same content, "
        "options and models had been."
    )
    read_at: datetime | None = Field(
        description="When the pages of a cached document were read, in UTC; null: see `timings`."
    )
    warnings: list[DocumentWarning] = Field(
        description="What a reader of the result should know, as in the result itself; none until "
        "the document is split."
    )
    error: ErrorView | None = Field(description="Why the document failed; null unless it did.")
    timings: TimingsView
    links: DocumentLinks


class DocumentPage(BaseModel):
    """Some documents, newest first."""

    documents: list[DocumentView]
    next_cursor: str | None = Field(description="Send it as `cursor` for more; null at the end.")


class PageView(BaseModel):
    """One page of a document in the ledger."""

    page_number: int = Field(description="Counted from 1.")
    state: PageState
    route: str | None = Field(description="How the page was read; null until it was.")
    crops_found: int | None = Field(description="Text lines that were found on the page.")
    crops_kept: int | None = Field(description="Text lines that were recognized.")
    truncated: bool = Field(description="Whether some of the text lines were left out.")
    line_count: int | None = Field(description="Text lines in the result.")
    mean_confidence: float | None = Field(description="Over the text lines, 0 to 1.")
    rotation_deg: int | None = Field(description="By how much the page was turned upright.")
    attempts: int = Field(description="How often the page was tried.")
    error: ErrorView | None


class PageList(BaseModel):
    """Some pages of a document in order."""

    pages: list[PageView]
    next_cursor: str | None = Field(description="Send it as `cursor` for more; null at the end.")


class BatchDocumentCounts(BaseModel):
    """How many documents of a batch are in each state."""

    total: int
    queued: int = 0
    splitting: int = 0
    recognizing: int = 0
    assembling: int = 0
    succeeded: int = 0
    partly_succeeded: int = 0
    failed: int = 0
    cancelled: int = 0


class BatchPageCounts(BaseModel):
    """Pages of a batch's documents; `ok` and `failed` count documents that are final only."""

    total: int = Field(description="Pages of the documents that are split.")
    ok: int
    failed: int


class BatchLinks(BaseModel):
    """Addresses that belong to a batch, relative to the API's own."""

    self: str
    documents: str
    report: str


class BatchListingView(BaseModel):
    """How far the search for a batch's objects is."""

    is_done: bool
    found: int = Field(description="Objects so far.")
    duplicates: int = Field(description="Of them, those of which the batch had a document.")
    skipped: int = Field(description="What is no document, as folders are.")
    size_bytes: int = Field(description="Of what was found.")


class BatchView(BaseModel):
    """One batch, and where its documents stand."""

    id: UUID
    name: str
    state: BatchState = Field(
        description="`open`: no document yet; `listing`: its objects are still being found; "
        "`running`: some documents are not final; `finished`: all that were sent are final, and "
        "sending another one makes it `running` again; `failed`: likewise, but not all objects "
        "could be found; `cancelled`."
    )
    options: dict[str, Any] = Field(description="Options of its documents that have no own.")
    documents: BatchDocumentCounts
    pages: BatchPageCounts
    listing: BatchListingView | None = Field(
        description="What was found to fill it with; null: nobody was asked to look."
    )
    error: ErrorView | None = Field(
        description="Why not all objects could be found; null unless that is so. The batch takes "
        "no further documents then, and a retry goes on."
    )
    created_at: datetime
    is_retrying: bool = Field(
        description="Whether documents are still to be sent again after a retry of the batch."
    )
    links: BatchLinks


class BatchPlanView(BaseModel):
    """What a batch would be filled with."""

    files: int = Field(description="Objects that would become documents.")
    size_bytes: int = Field(description="Of them.")
    pages: int = Field(description="Of images, by their names, which have one page each.")
    estimated_pages: int = Field(description="Of all others, guessed from their sizes.")
    missing: int = Field(
        description="Objects that are named, and not there or not handed out; their documents "
        "would fail."
    )
    skipped: int = Field(description="What is no document, as folders are.")
    seconds: float | None = Field(
        description="Until all that waits now, and then these, are read, at the pace of the last "
        "minutes; null: nothing was read in them."
    )
    next_cursor: str | None = Field(
        description="Send it as `cursor` to count what comes after these; null: these are all."
    )


class BatchPage(BaseModel):
    """Some batches, newest first."""

    batches: list[BatchView]
    next_cursor: str | None = Field(description="Send it as `cursor` for more; null at the end.")


def document_view(entry: DocumentEntry) -> DocumentView:
    """Return what the API tells about a document."""
    document = entry.document
    options = OcrOptions.from_row(document.options)
    return DocumentView(
        id=document.id,
        batch_id=document.batch_id,
        state=DocumentState(document.state),
        filename=document.filename,
        media_type=document.media_type,
        size_bytes=document.size_bytes,
        sha256=document.sha256 or None,
        # Checked by the database; a plain string as far as types go.
        priority=document.priority,  # type: ignore[arg-type]
        external_id=document.external_id,
        metadata=document.user_metadata,
        options=options.model_dump(mode="json"),
        progress=_progress(document, entry.page_counts),
        truncated=document.truncated,
        model_version=document.model_version,
        cached=document.cached_from is not None,
        read_at=document.read_at,
        warnings=[] if document.page_count is None else options.warnings(document.page_count),
        error=_error(document.error_code, document.error_detail),
        timings=TimingsView.model_validate(document, from_attributes=True),
        links=_document_links(document),
    )


def page_view(page: Page) -> PageView:
    """Return what the API tells about a page."""
    return PageView(
        page_number=page_number(page.page_index),
        state=PageState(page.state),
        route=page.route,
        crops_found=page.crops_found,
        crops_kept=page.crops_kept,
        truncated=page.truncated,
        line_count=page.line_count,
        mean_confidence=page.mean_confidence,
        rotation_deg=page.rotation_deg,
        attempts=page.attempts,
        error=_error(page.error_code, page.error_detail),
    )


def batch_view(batch: Batch, counts: BatchCounts) -> BatchView:
    """Return what the API tells about a batch."""
    by_state = {state.value: count for state, count in counts.documents.items()}
    address = f"/v1/batches/{batch.id}"
    return BatchView(
        id=batch.id,
        name=batch.name,
        state=batch_state(batch, counts),
        options=batch.options,
        documents=BatchDocumentCounts(total=counts.total, **by_state),
        pages=BatchPageCounts(total=counts.pages, ok=counts.pages_ok, failed=counts.pages_failed),
        listing=_listing(counts.listed),
        error=_listing_error(counts.listed),
        created_at=batch.created_at,
        is_retrying=batch.retry_requested_at is not None,
        links=BatchLinks(
            self=address, documents=f"{address}/documents", report=f"{address}/report"
        ),
    )


def batch_state(batch: Batch, counts: BatchCounts) -> BatchState:
    """Return where a batch stands, from its documents.

    A batch that nobody closed takes documents at any time, so its ``finished`` is what stands
    now and no end; only a stored ``finished`` or ``cancelled`` is final.
    """
    if batch.state in {BatchState.FINISHED, BatchState.CANCELLED}:
        return BatchState(batch.state)
    if counts.listed is not None and counts.listed.is_open:
        return BatchState.LISTING
    if batch.retry_requested_at is not None or counts.final < counts.total:
        return BatchState.RUNNING
    if batch.state == BatchState.FAILED:
        return BatchState.FAILED
    if counts.total == 0 and counts.listed is None:
        return BatchState.OPEN
    return BatchState.FINISHED


def is_final(document: Document) -> bool:
    """Say whether nothing about a document will change any more."""
    return document.state in FINAL_DOCUMENT_STATES


def document_page(entries: Sequence[DocumentEntry], *, next_cursor: str | None) -> DocumentPage:
    """Return a listing."""
    return DocumentPage(
        documents=[document_view(entry) for entry in entries], next_cursor=next_cursor
    )


def _progress(document: Document, counts: Mapping[PageState, int] | None) -> ProgressView:
    if counts is None:
        ok, failed, skipped = document.pages_ok, document.pages_failed, document.pages_skipped
    else:
        ok, failed, skipped = (
            counts.get(state, 0) for state in (PageState.OK, PageState.FAILED, PageState.SKIPPED)
        )
    pages = document.page_count
    left = None if pages is None else pages - ok - failed - skipped
    return ProgressView(pages=pages, ok=ok, failed=failed, skipped=skipped, left=left)


def _listing(listed: Listed | None) -> BatchListingView | None:
    if listed is None:
        return None
    return BatchListingView(
        is_done=not listed.is_open,
        found=listed.found,
        duplicates=listed.duplicates,
        skipped=listed.skipped,
        size_bytes=listed.size_bytes,
    )


def _listing_error(listed: Listed | None) -> ErrorView | None:
    return None if listed is None else _error(listed.error_code, listed.error_detail)


def _error(code: str | None, detail: str | None) -> ErrorView | None:
    return None if code is None else ErrorView(code=code, message=detail or sentence(code))


def _document_links(document: Document) -> DocumentLinks:
    address = f"/v1/documents/{document.id}"
    has_result = document.result_key is not None
    return DocumentLinks(
        self=address,
        pages=f"{address}/pages",
        result=f"{address}/result?format=json" if has_result else None,
        text=f"{address}/result?format=text" if has_result else None,
        batch=None if document.batch_id is None else f"/v1/batches/{document.batch_id}",
    )
