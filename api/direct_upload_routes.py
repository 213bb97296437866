"""Files that clients put into storage themselves: announce, send, complete, abort."""

from typing import Annotated
from uuid import UUID

from anyio.to_thread import run_sync
from fastapi import APIRouter, Body, Query, Request, Response

from api.begin_direct_upload import begin_direct_upload, parts_to_send
from api.complete_direct_upload import complete_direct_upload, find_upload
from api.direct_upload_ledger import DirectUploads
from api.direct_upload_views import (
    CompletedUpload,
    NewUpload,
    PartPage,
    UploadView,
    UploadWithParts,
    completed_view,
    upload_view,
    with_parts,
)
from api.document_routes import (
    ACCEPTED_HEADERS,
    WAITED,
    IdempotencyKey,
    Prefer,
    accepted_response,
)
from api.errors import ApiError
from api.ledger import DocumentEntry, Ledger, ServicesOfProcess
from api.problems import declared
from api.views import DocumentView
from db.direct_uploads import UploadIsCheckedError
from db.states import DirectUploadState
from storage.part_uploads import MAX_PARTS

MAX_ADDRESSES = 100  # each takes about a millisecond
_CREATED = 201
_ACCEPTED = 202
_NO_CONTENT = 204
_OF_ONE = ("unauthenticated", "not_found", "invalid_request", "database_unavailable")

router = APIRouter(tags=["uploads"])


@router.post(
    "/v1/uploads",
    status_code=_CREATED,
    responses={
        _CREATED: {
            "description": "The parts may be sent.",
            "headers": {
                "Location": {"description": "Its address.", "schema": {"type": "string"}},
                "Idempotent-Replayed": {
                    "description": "`true` when an earlier request made the upload.",
                    "schema": {"type": "string"},
                },
            },
        },
        **declared(
            "malformed_body",
            "unauthenticated",
            "unknown_batch",
            "batch_closed",
            "file_too_large",
            "body_too_large",
            "invalid_request",
            "idempotency_mismatch",
            "quota_exceeded",
            "too_many_uploads",
            "system_full",
            "storage_unavailable",
            "database_unavailable",
        ),
    },
)
async def create_upload(
    new: NewUpload,
    ledger: Ledger,
    uploads: DirectUploads,
    services: ServicesOfProcess,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> UploadWithParts:
    """Announce a file that you put into storage yourself, past this API.

    The answer has an address for each of its parts, up to a hundred; a small file has one part.
    `PUT` them there, then complete the upload. It is refused now where its document would be.
    """
    announced = await begin_direct_upload(
        new, idempotency_key, ledger=ledger, uploads=uploads, services=services
    )
    found = announced.found
    if announced.is_replayed:
        response.headers["Idempotent-Replayed"] = "true"
    if isinstance(found, DocumentEntry):
        completed = completed_view(found.document)
        response.headers["Location"] = completed.links.self
        return with_parts(completed, [], None)
    view = upload_view(found)
    response.headers["Location"] = view.links.self
    page = await services.in_storage_thread(
        parts_to_send,
        found,
        services.store,
        first=1,
        limit=MAX_ADDRESSES,
        address_s=services.settings.api_direct_upload_address_s,
        is_new=not announced.is_replayed,
    )
    return with_parts(view, page.parts, page.next_part)


@router.get("/v1/uploads/{upload_id}", responses=declared(*_OF_ONE))
def read_upload(upload_id: UUID, ledger: Ledger, uploads: DirectUploads) -> UploadView:
    """Say where an upload stands. One that has expired or was aborted is not there any more."""
    found = find_upload(upload_id, ledger, uploads)
    if isinstance(found, DocumentEntry):
        return completed_view(found.document)
    return upload_view(found)


@router.get(
    "/v1/uploads/{upload_id}/parts",
    responses=declared("upload_ended", "storage_unavailable", *_OF_ONE),
)
async def list_upload_parts(
    upload_id: UUID,
    ledger: Ledger,
    uploads: DirectUploads,
    services: ServicesOfProcess,
    *,
    first: Annotated[
        int, Query(ge=1, le=MAX_PARTS, description="The part to begin with, counted from 1.")
    ] = 1,
    limit: Annotated[int, Query(ge=1, le=MAX_ADDRESSES)] = MAX_ADDRESSES,
) -> PartPage:
    """List parts of an open upload: which of them are in storage, and new addresses for each.

    An address is good for a few minutes (`url_expires_at`); ask again for those that are left.
    """  # noqa: DOC501 - it is the description that users read
    found = await run_sync(find_upload, upload_id, ledger, uploads)
    if isinstance(found, DocumentEntry) or found.state != DirectUploadState.OPEN:
        raise ApiError("upload_ended")
    return await services.in_storage_thread(
        parts_to_send,
        found,
        services.store,
        first=first,
        limit=limit,
        address_s=services.settings.api_direct_upload_address_s,
    )


@router.post(
    "/v1/uploads/{upload_id}/complete",
    status_code=_ACCEPTED,
    response_model=DocumentView,
    responses={
        200: WAITED,
        _ACCEPTED: {"description": "The document is accepted.", "headers": ACCEPTED_HEADERS},
        **declared(
            "malformed_body",
            "unauthenticated",
            "not_found",
            "unknown_batch",
            "upload_incomplete",
            "upload_checking",
            "batch_closed",
            "body_too_large",
            "unsupported_media_type",
            "invalid_request",
            "upload_mismatch",
            "idempotency_mismatch",
            "quota_exceeded",
            "too_many_uploads",
            "system_full",
            "storage_unavailable",
            "database_unavailable",
        ),
    },
)
async def complete_upload(
    upload_id: UUID,
    request: Request,
    ledger: Ledger,
    uploads: DirectUploads,
    services: ServicesOfProcess,
    sent: Annotated[
        CompletedUpload | None,
        Body(description="Optional: a password, and parts that must be in storage as sent."),
    ] = None,
    preferences: Prefer = None,
) -> Response:
    """Make a document of an upload whose parts are all in storage.

    Size and SHA-256 are checked, the type is told from the content, and the document is accepted
    or refused as one that comes with its request. Sent again, it is answered with the same
    document. Where reading takes longer than a request may, the answer is `upload_checking`, and
    the document is that of a later one.
    """
    etags = {part.part_number: part.etag.strip('"') for part in sent.parts} if sent else {}
    acceptance = await complete_direct_upload(
        upload_id,
        etags,
        ledger=ledger,
        uploads=uploads,
        services=services,
        password=sent.stated_password if sent else None,
    )
    return await accepted_response(acceptance, request, ledger, services, preferences)


@router.delete(
    "/v1/uploads/{upload_id}",
    status_code=_NO_CONTENT,
    responses=declared("upload_checking", "upload_ended", *_OF_ONE),
)
def abort_upload(upload_id: UUID, ledger: Ledger, uploads: DirectUploads) -> None:
    """Give an upload up. Its addresses open nothing any more, and what was sent is removed.

    A part that was being sent just then is removed within hours.
    """  # noqa: DOC501 - it is the description that users read
    if isinstance(find_upload(upload_id, ledger, uploads), DocumentEntry):
        raise ApiError("upload_ended")
    try:
        uploads.abort(upload_id)
    except UploadIsCheckedError as error:
        raise ApiError("upload_checking") from error
