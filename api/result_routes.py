"""Results: streamed from storage as they are stored, or made of them while they are sent."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, StreamingResponse

from api import etags
from api.document_routes import IfNoneMatch
from api.errors import ApiError, FieldProblem, InvalidFieldsError, sentence
from api.filenames import content_disposition
from api.ledger import Ledger, ServicesOfProcess, TenantLedger
from api.object_streams import PART_BYTES, open_object, parts_of
from api.problems import declared
from api.services import Services
from api.views import is_final
from db.exports import Refusal, Requested
from db.models import Document
from db.states import DocumentState, ExportState, Priority
from storage import keys
from storage.object_store import ObjectStore
from workers.ocr.exports.formats import FORMATS, ExportFormat
from workers.ocr.exports.page_choice import pages_name, parse_pages
from workers.ocr.exports.stored_result import open_result
from workers.ocr.exports.text_formats import TEXT_WRITERS

_NOT_MODIFIED = 304
_ACCEPTED = 202
_EXPORT_RETRY_AFTER_S = 2
_MOST_SENT_AT_ONCE = 16
_REFUSALS = {
    Refusal.TENANT_FULL: "too_many_open_exports",
    Refusal.RESULT_FULL: "too_many_exports",
}

router = APIRouter(tags=["results"])

_RESULT_CONTENT = {
    "application/json": {
        "schema": {"type": "object", "description": "The result, schema `pagefleet/1`."}
    },
    **{
        facts.media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
        for name, facts in FORMATS.items()
        if name != "json"
    },
}
_STORED: frozenset[ExportFormat] = frozenset({"json", "text"})
# Made of the result while it is sent; the others are made once, by a worker.
_MADE_AT_ONCE: frozenset[ExportFormat] = frozenset({"json", "text", "markdown"})
# The way to a page leads through all before it, and holds one of a few threads for storage.
_MOST_READ_AT_ONCE_BYTES = 32 * 2**20


class ExportView(BaseModel):
    """A form of a result that a worker is making."""

    format: str
    pages: str | None = Field(description="The page or range that was asked for; null for all.")
    state: ExportState = Field(description="`queued` or `running`.")


@router.get(
    "/v1/documents/{document_id}/result",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The result, whole.", "content": _RESULT_CONTENT},
        _ACCEPTED: {
            "model": ExportView,
            "description": "A worker makes this format; ask again after `Retry-After` seconds.",
        },
        _NOT_MODIFIED: {"description": "The result is the one whose ETag was sent."},
        **declared(
            "unauthenticated",
            "not_found",
            "not_ready",
            "no_result",
            "cancelled",
            "export_failed",
            "too_many_exports",
            "too_many_open_exports",
            "invalid_request",
            "storage_unavailable",
            "database_unavailable",
        ),
    },
)
async def read_result(
    document_id: UUID,
    ledger: Ledger,
    services: ServicesOfProcess,
    format_: Annotated[
        ExportFormat,
        Query(alias="format", description="What is wanted; docs/formats.md says what each holds."),
    ] = "json",
    pages: Annotated[
        str | None,
        Query(
            pattern=r"^[1-9][0-9]{0,5}(-[1-9][0-9]{0,5})?$",
            description="One page, as `7`, or a range, as `3-9`; all pages without it.",
        ),
    ] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the newest result of a document, in one of its forms.

    `json` and `text` of all pages are sent as they are stored, and made at once of some pages, as
    `markdown` is, where the result is not large. All else is made by a worker when it is first
    asked for, and answered with 202 until then.
    """
    entry = await anyio.to_thread.run_sync(ledger.document, document_id)
    wanted = _wanted_pages(pages, entry.document.page_count)
    asked = _Asked(entry.document, _require_result(entry.document), format_, wanted)
    is_stored = wanted is None and format_ in _STORED
    if not is_stored and not _is_made_at_once(asked):
        return await _exported(asked, ledger, services, if_none_match)
    # Results are written once under a key of their own, so the key tells the version.
    etag = etags.etag_of(asked.result_key, format_, *([pages_name(wanted)] if wanted else []))
    if etags.matches(if_none_match, etag):
        return Response(status_code=_NOT_MODIFIED, headers=etags.headers_of(etag))
    if is_stored:
        is_text = format_ == "text"
        key = keys.text_key_of(asked.result_key) if is_text else asked.result_key
        return await _stored(asked, key, etag, services)
    parts = await services.in_storage_thread(_convert, services.store, asked)
    return _streamed(asked, parts, etag, services)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for; ``wanted`` are page numbers, None for all."""

    document: Document
    result_key: str
    name: ExportFormat
    wanted: range | None


def _is_made_at_once(asked: _Asked) -> bool:
    size_bytes = asked.document.result_size_bytes or 0
    return asked.name in _MADE_AT_ONCE and size_bytes <= _MOST_READ_AT_ONCE_BYTES


def _wanted_pages(given: str | None, page_count: int | None) -> range | None:
    if given is None:
        return None
    try:
        wanted = parse_pages(given)
    except ValueError as error:
        raise InvalidFieldsError(FieldProblem("pages", str(error))) from error
    if page_count is not None and wanted.stop - 1 > page_count:
        raise InvalidFieldsError(FieldProblem("pages", f"The document has {page_count} pages."))
    return wanted


async def _exported(
    asked: _Asked, ledger: TenantLedger, services: Services, if_none_match: str | None
) -> Response:
    """Answer with what a worker has stored, or have it made.

    Raises:
        ApiError: it could not be made, or there is no room for it.
    """
    requested = await anyio.to_thread.run_sync(_request, asked, ledger, services)
    export = requested.export
    if export.result_key is not None:
        etag = etags.etag_of(export.result_key)
        if etags.matches(if_none_match, etag):
            return Response(status_code=_NOT_MODIFIED, headers=etags.headers_of(etag))
        return await _stored(asked, export.result_key, etag, services)
    if export.state == ExportState.FAILED:
        code = export.error_code or "internal"
        error = {"code": code, "message": sentence(code)}
        raise ApiError("export_failed", extra={"export_error": error})
    view = ExportView(
        format=export.format, pages=export.pages or None, state=ExportState(export.state)
    )
    headers = {"Retry-After": str(_EXPORT_RETRY_AFTER_S), "Cache-Control": "no-store"}
    return JSONResponse(view.model_dump(mode="json"), status_code=_ACCEPTED, headers=headers)


def _request(asked: _Asked, ledger: TenantLedger, services: Services) -> Requested:
    """Insert the row where there is none, and tell a worker of it after the commit.

    Raises:
        ApiError: the tenant, or the result, has as many exports as it may.
    """
    document = asked.document
    requested = ledger.export(
        document.id,
        generation=keys.generation_of(asked.result_key),
        name=asked.name,
        pages=pages_name(asked.wanted),
        dispatch_after_s=services.settings.dispatch_grace_s,
    )
    if isinstance(requested, Refusal):
        raise ApiError(_REFUSALS[requested])
    # Those of a tenant who wants many are sent by the sweep, which minds whose turn it is.
    if requested.is_new and not (
        requested.open_before < _MOST_SENT_AT_ONCE
        and services.send_export(
            requested.export.id, document.id, priority=Priority(document.priority)
        )
    ):
        ledger.leave_export_to_sweep(requested.export.id)
    return requested


async def _stored(asked: _Asked, key: str, etag: str, services: Services) -> Response:
    size_bytes, parts = await services.in_storage_thread(open_object, services.store, key)
    response = _streamed(asked, parts, etag, services)
    response.headers["Content-Length"] = str(size_bytes)
    return response


def _streamed(
    asked: _Asked, parts: Iterator[bytes], etag: str, services: Services
) -> StreamingResponse:
    facts = FORMATS[asked.name]
    name = pages_name(asked.wanted)
    extension = f".pages-{name}{facts.extension}" if name else facts.extension
    disposition = content_disposition(asked.document.filename, extension=extension)
    headers = {**etags.headers_of(etag), "Content-Disposition": disposition}
    return StreamingResponse(
        parts_of(parts, services), headers=headers, media_type=facts.media_type
    )


def _convert(store: ObjectStore, asked: _Asked) -> Iterator[bytes]:
    """Start to make a format, so that a result that is missing is an error and no half answer."""
    source = store.stream(asked.result_key, part_bytes=PART_BYTES)
    header, pages = open_result(source, wanted=asked.wanted)
    return (part.encode() for part in TEXT_WRITERS[asked.name](header, pages) if part)


def _require_result(document: Document) -> str:
    # A document that is being retried has the result of before, until the new one is there.
    if document.result_key is None:
        if not is_final(document):
            raise ApiError("not_ready")
        if document.state == DocumentState.CANCELLED:
            raise ApiError("cancelled")
        code = document.error_code or document.state
        message = document.error_detail or sentence(code)
        raise ApiError("no_result", extra={"document_error": {"code": code, "message": message}})
    return document.result_key
