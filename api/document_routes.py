"""Documents: send one, ask about it, list them."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

import anyio
import structlog
from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel

from api import cursor as cursors
from api import etags, prefer, waiting
from api.accept_document import Acceptance, Submission, accept_document, page_limits_of
from api.answer_deadline import lift
from api.filenames import MAX_LENGTH
from api.ledger import Ledger, ServicesOfProcess, TenantLedger
from api.problems import declared
from api.services import Services
from api.source_reference import is_reference, receive_reference
from api.source_upload import SourceUpload
from api.upload_admission import require_admission, require_room, stated_lane
from api.upload_form import MAX_PASSWORD_LENGTH, receive_form, timely
from api.views import (
    DocumentPage,
    DocumentView,
    PageList,
    document_page,
    document_view,
    is_final,
    page_view,
)
from db.ids import new_id
from db.states import DocumentState
from storage import keys
from storage.errors import StorageError

RETRY_AFTER_S = 2
MAX_DOCUMENTS = 100
MAX_PAGES = 1_000
STREAMED = ("POST", "/v1/documents")  # reads its body as it arrives, and counts it
_ACCEPTED = 202
_NOT_MODIFIED = 304

log = structlog.get_logger(__name__)
router = APIRouter(tags=["documents"])

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="Names this request: sent again with the same key and content, it is "
        "answered with the document that the first one made.",
    ),
]
_CURSOR = "`next_cursor` of the page before."
IdCursor = Annotated[
    str | None, Query(description=_CURSOR, json_schema_extra={"pattern": cursors.ID_PATTERN})
]
IndexCursor = Annotated[
    str | None, Query(description=_CURSOR, json_schema_extra={"pattern": cursors.INDEX_PATTERN})
]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="The ETag of an earlier answer.")
]
Prefer = Annotated[
    list[str] | None,
    Header(
        alias="Prefer",
        description="`wait=20`: answer with the result if it is there in 20 seconds (RFC 7240).",
    ),
]

# What the body is cannot be told from the function, which reads it as it arrives.
_UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "additionalProperties": False,
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "minLength": 1,
                            "description": "The document; its type is told from its content.",
                        },
                        "options": {
                            "allOf": [{"$ref": "#/components/schemas/OcrOptions"}],
                            "description": "JSON; options that are left out are the batch's, "
                            "or the defaults.",
                        },
                        # An empty field counts as not sent, as HTML forms send it.
                        "batch_id": {
                            "anyOf": [
                                {"type": "string", "format": "uuid"},
                                {"type": "string", "maxLength": 0},
                            ]
                        },
                        "priority": {
                            "type": "string",
                            "enum": ["interactive", "bulk", ""],
                            "description": "Default: `bulk` in a batch, else `interactive`.",
                        },
                        "external_id": {
                            "type": "string",
                            "maxLength": MAX_LENGTH,
                            "description": "The sender's own id of the document, for reports; "
                            "need not be unique.",
                        },
                        "metadata": {
                            "type": "object",
                            "description": "JSON of up to 16 KiB, returned as given.",
                        },
                        "password": {
                            "type": "string",
                            "format": "password",
                            "maxLength": MAX_PASSWORD_LENGTH,
                            "description": "Of an encrypted PDF. Kept until the document is "
                            "split, shown by nothing.",
                        },
                    },
                },
                "encoding": {
                    "options": {"contentType": "application/json"},
                    "metadata": {"contentType": "application/json"},
                },
            },
            "application/json": {"schema": {"$ref": "#/components/schemas/SourceReference"}},
        },
    }
}
ACCEPTED_HEADERS = {
    "Location": {"description": "The document's address.", "schema": {"type": "string"}},
    "Retry-After": {
        "description": "Seconds after which to ask for its state.",
        "schema": {"type": "integer"},
    },
    "Idempotent-Replayed": {
        "description": "`true` when an earlier request made the document.",
        "schema": {"type": "string"},
    },
    "Preference-Applied": {
        "description": "For how long the result was waited for, as `wait=20`.",
        "schema": {"type": "string"},
    },
}
WAITED: dict[str, Any] = {
    "description": "The result, where `Prefer: wait` was sent and it came in time.",
    "headers": {name: each for name, each in ACCEPTED_HEADERS.items() if name != "Retry-After"},
    "content": {
        "application/json": {
            "schema": {"type": "object", "description": "The result, schema `pagefleet/1`."}
        }
    },
}


@router.post(
    "/v1/documents",
    status_code=_ACCEPTED,
    response_model=DocumentView,
    openapi_extra=_UPLOAD_BODY,
    responses={
        200: WAITED,
        _ACCEPTED: {"description": "The document is accepted.", "headers": ACCEPTED_HEADERS},
        **declared(
            "malformed_body",
            "unauthenticated",
            "source_not_allowed",
            "request_timeout",
            "batch_closed",
            "file_too_large",
            "body_too_large",
            "unsupported_media_type",
            "empty",
            "invalid_request",
            "idempotency_mismatch",
            "unknown_batch",
            "source_not_found",
            "source_refused",
            "quota_exceeded",
            "too_many_uploads",
            "system_full",
            "storage_unavailable",
            "database_unavailable",
        ),
    },
)
async def submit_document(
    request: Request,
    ledger: Ledger,
    services: ServicesOfProcess,
    idempotency_key: IdempotencyKey = None,
    preferences: Prefer = None,
) -> Response:
    """Send a document to be read, or name an object that is one.

    A file is stored as it arrives. An object is looked at now and read later: as it is now, or not
    at all. The answer comes when it is safe; the pages are read afterwards, and waited for where
    `Prefer: wait` says so. A full system, and a key whose quota is used up, are told before the
    file is taken.
    """
    await anyio.to_thread.run_sync(require_admission, idempotency_key, ledger, services.admission)
    if is_reference(request):
        acceptance = await receive_reference(request, ledger, services, idempotency_key)
    else:
        with services.upload_slot(ledger.tenant):
            acceptance = await _receive(request, ledger, services, idempotency_key)
    return await accepted_response(acceptance, request, ledger, services, preferences)


@router.get(
    "/v1/documents/{document_id}",
    response_model=DocumentView,
    responses={
        _NOT_MODIFIED: {"description": "Nothing has changed since the ETag that was sent."},
        **declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
    },
)
def read_document(document_id: UUID, ledger: Ledger, if_none_match: IfNoneMatch = None) -> Response:
    """Say where a document stands."""
    entry = ledger.document(document_id)
    view = document_view(entry)
    etag = etags.etag_of(view.model_dump_json())
    headers = etags.headers_of(etag)
    if not is_final(entry.document):
        headers["Retry-After"] = str(RETRY_AFTER_S)
    if etags.matches(if_none_match, etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return _json(view, headers=headers)


@router.get(
    "/v1/documents",
    responses=declared("unauthenticated", "invalid_request", "database_unavailable"),
)
def list_documents(
    ledger: Ledger,
    limit: Annotated[int, Query(ge=1, le=MAX_DOCUMENTS)] = 20,
    cursor: IdCursor = None,
    batch_id: Annotated[UUID | None, Query(description="Only those of this batch.")] = None,
    state: Annotated[DocumentState | None, Query(description="Only those in this state.")] = None,
) -> DocumentPage:
    """List documents, newest first. Documents that arrive meanwhile do not shift the pages."""
    return list_of(ledger, limit=limit, cursor=cursor, batch_id=batch_id, state=state)


@router.get(
    "/v1/documents/{document_id}/pages",
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def list_pages(
    document_id: UUID,
    ledger: Ledger,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGES)] = 100,
    cursor: IndexCursor = None,
) -> PageList:
    """List the pages of a document and how each was read; empty until the document is split."""
    after_index = -1 if cursor is None else cursors.decode_index(cursor)
    found = ledger.pages(document_id, after_index=after_index, limit=limit + 1)
    has_more = len(found) > limit
    return PageList(
        pages=[page_view(page) for page in found[:limit]],
        next_cursor=cursors.encode_index(found[limit - 1].page_index) if has_more else None,
    )


def list_of(
    ledger: TenantLedger,
    *,
    limit: int,
    cursor: str | None,
    batch_id: UUID | None,
    state: DocumentState | None,
) -> DocumentPage:
    """Return one page of a listing; one row more than wanted tells whether it is the last."""
    found = ledger.documents(
        limit=limit + 1,
        before=None if cursor is None else cursors.decode_id(cursor),
        batch_id=batch_id,
        state=state,
    )
    has_more = len(found) > limit
    return document_page(
        found[:limit],
        next_cursor=cursors.encode_id(found[limit - 1].document.id) if has_more else None,
    )


async def accepted_response(
    acceptance: Acceptance,
    request: Request,
    ledger: TenantLedger,
    services: Services,
    preferences: list[str] | None,
) -> Response:
    """Return the answer to whoever sent a document, after waiting for its result if so asked.

    Who repeats what another key has sent gets no result: that takes a key that may read.
    """
    entry = acceptance.entry
    is_own = entry.document.key_id == ledger.key_id
    headers = {"Location": f"/v1/documents/{entry.document.id}"}
    if acceptance.is_replayed:
        headers["Idempotent-Replayed"] = "true"
    wait_s = prefer.wait_s(preferences or (), most_s=services.settings.api_max_wait_s)
    if is_own and wait_s:
        headers["Preference-Applied"] = f"wait={wait_s}"
        lift(request.scope)
        entry = await waiting.entry_when_final(
            entry, request.receive, ledger=ledger, services=services, wait_s=wait_s
        )
        if answer := await waiting.result_response(entry, services, headers):
            return answer
    headers["Retry-After"] = str(RETRY_AFTER_S)
    return _json(document_view(entry), status_code=_ACCEPTED, headers=headers)


async def _receive(
    request: Request, ledger: TenantLedger, services: Services, idempotency_key: str | None
) -> Acceptance:
    settings = services.settings
    document_id = new_id()
    upload = SourceUpload(
        services.store,
        keys.source_key(document_id),
        max_bytes=settings.api_max_upload_bytes,
    )

    async def require_room_of_its_own(fields: Mapping[str, str]) -> None:
        if priority := stated_lane(fields):
            await anyio.to_thread.run_sync(
                require_room, priority, idempotency_key, ledger, services.admission
            )

    async def write(block: bytes) -> None:
        await services.in_storage_thread(upload.write, block)

    try:
        filename, fields = await receive_form(
            timely(
                request.stream(),
                idle_s=settings.api_upload_idle_s,
                min_bytes_per_s=settings.api_upload_min_bytes_per_s,
            ),
            request.headers.get("Content-Type"),
            before_file=require_room_of_its_own,
            write=write,
            max_file_bytes=settings.api_max_upload_bytes,
        )
        return await services.in_accepting_thread(
            accept_document,
            Submission(
                document_id,
                filename,
                fields,
                idempotency_key,
                password=fields.stated_password,
            ),
            upload,
            ledger=ledger,
            store=services.store,
            messages=services.messages,
            admission=services.admission,
            page_limits=page_limits_of(settings),
            dispatch_after_s=settings.dispatch_grace_s,
        )
    except BaseException as error:  # a request that is cancelled leaves nothing behind either
        with anyio.CancelScope(shield=True):
            await _abort(upload, services, error)
        raise


async def _abort(upload: SourceUpload, services: Services, reason: BaseException) -> None:
    try:
        await services.in_storage_thread(upload.abort, reason)
    except StorageError:
        log.warning("upload could not be aborted")


def _json(view: BaseModel, *, headers: dict[str, str], status_code: int = 200) -> Response:
    return Response(
        view.model_dump_json().encode(),
        status_code=status_code,
        headers=headers,
        media_type="application/json",
    )
