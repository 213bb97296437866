"""Results: streamed from storage as they are stored."""

from typing import Annotated, Literal
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from api import etags
from api.document_routes import IfNoneMatch
from api.errors import ApiError, sentence
from api.filenames import content_disposition
from api.ledger import Ledger, ServicesOfProcess
from api.object_streams import open_object, parts_of
from api.problems import declared
from api.views import is_final
from db.models import Document
from db.states import DocumentState
from storage import keys

_NOT_MODIFIED = 304

router = APIRouter(tags=["results"])

ResultFormat = Literal["json", "text"]
_MEDIA_TYPES: dict[ResultFormat, str] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
}
_EXTENSIONS: dict[ResultFormat, str] = {"json": ".json", "text": ".txt"}
_RESULT_CONTENT = {
    "application/json": {
        "schema": {"type": "object", "description": "The result, schema `pagefleet/1`."}
    },
    "text/plain": {"schema": {"type": "string"}},
}


@router.get(
    "/v1/documents/{document_id}/result",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The result, whole.", "content": _RESULT_CONTENT},
        _NOT_MODIFIED: {"description": "The result is the one whose ETag was sent."},
        **declared(
            "unauthenticated",
            "not_found",
            "not_ready",
            "no_result",
            "cancelled",
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
        ResultFormat, Query(alias="format", description="`text` is the result's `full_text`.")
    ] = "json",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the newest result of a document."""
    entry = await anyio.to_thread.run_sync(ledger.document, document_id)
    result_key = _require_result(entry.document)
    # Results are written once under a key of their own, so the key tells the version.
    etag = etags.etag_of(result_key, format_)
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if etags.matches(if_none_match, etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    key = result_key
    if format_ == "text":
        key = keys.text_key_of(result_key)
    size_bytes, parts = await services.in_storage_thread(open_object, services.store, key)
    headers |= {
        "Content-Length": str(size_bytes),
        "Content-Disposition": content_disposition(
            entry.document.filename, extension=_EXTENSIONS[format_]
        ),
    }
    return StreamingResponse(
        parts_of(parts, services), headers=headers, media_type=_MEDIA_TYPES[format_]
    )


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
