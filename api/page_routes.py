"""One page of a document: what was read on it, and its image."""

import gzip
import time
from collections.abc import Iterator
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Path, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from api import etags
from api.document_routes import IfNoneMatch
from api.errors import ApiError, sentence
from api.ledger import Ledger, ServicesOfProcess
from api.object_streams import open_object, parts_of
from api.problems import declared
from api.services import Services
from api.views import PageView, page_view
from db.models import Page
from db.states import PageState
from storage import keys
from storage.errors import ObjectNotFoundError
from storage.object_store import ObjectStore
from workers.dispatch import DispatchError
from workers.ocr.page_numbers import page_index

_IMAGE_TYPE = "image/jpeg"
_RETRY_AFTER_S = 1
_ACCEPTED = 202
_NOT_MODIFIED = 304
_MOST_PAGES = 2**31 - 1  # what the ledger can count

router = APIRouter(tags=["pages"])

PageNumber = Annotated[int, Path(ge=1, le=_MOST_PAGES, description="Counted from 1.")]


class PageResult(BaseModel):
    """A page in the ledger, and what was read on it."""

    page: PageView
    result: dict[str, Any] | None = Field(
        description="The page as in `pages` of the result, schema `pagefleet/1`; null until it was "
        "read, and of a page that failed."
    )


class DrawingView(BaseModel):
    """A page image that is being made."""

    state: str = Field(default="drawing", description="`drawing`: ask again.")


@router.get(
    "/v1/documents/{document_id}/pages/{page_number}",
    response_model=PageResult,
    responses={
        _NOT_MODIFIED: {"description": "Nothing has changed since the ETag that was sent."},
        **declared(
            "unauthenticated",
            "not_found",
            "invalid_request",
            "storage_unavailable",
            "database_unavailable",
        ),
    },
)
async def read_page(
    document_id: UUID,
    page_number: PageNumber,
    ledger: Ledger,
    services: ServicesOfProcess,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Say where a page stands and what was read on it, also before its document is done."""
    page = await anyio.to_thread.run_sync(ledger.page, document_id, page_index(page_number))
    view = page_view(page)
    etag = etags.etag_of(view.model_dump_json(), page.result_key or "")
    headers = etags.headers_of(etag)
    if etags.matches(if_none_match, etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    result = await services.in_storage_thread(_result_of, services.store, page)
    body = b'{"page":%b,"result":%b}' % (view.model_dump_json().encode(), result)
    return Response(body, headers=headers, media_type="application/json")


@router.get(
    "/v1/documents/{document_id}/pages/{page_number}/image",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The page, upright; polygons of its result are in its pixels.",
            "content": {_IMAGE_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        _ACCEPTED: {
            "description": "The image is being drawn; ask again.",
            "model": DrawingView,
            "headers": {"Retry-After": {"schema": {"type": "integer"}}},
        },
        _NOT_MODIFIED: {"description": "The image is the one whose ETag was sent."},
        **declared(
            "unauthenticated",
            "not_found",
            "not_ready",
            "no_image",
            "invalid_request",
            "too_many_images",
            "storage_unavailable",
            "database_unavailable",
        ),
    },
)
async def read_page_image(
    document_id: UUID,
    page_number: PageNumber,
    ledger: Ledger,
    services: ServicesOfProcess,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return the image of a page. It is drawn when it is first asked for."""  # noqa: DOC501 - it is the description that users read
    index = page_index(page_number)
    page = await anyio.to_thread.run_sync(ledger.page, document_id, index)
    if page.state == PageState.QUEUED:
        raise ApiError("not_ready")
    key = keys.page_image_key(document_id, page.generation, index)
    etag = etags.etag_of(key)
    headers = etags.headers_of(etag)
    if etags.matches(if_none_match, etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    opened = await services.in_storage_thread(_open_if_there, services.store, key)
    if opened is None:
        await services.in_storage_thread(_require_drawable, services.store, page)
        await anyio.to_thread.run_sync(_draw, services, ledger.tenant, document_id, index)
        return JSONResponse(
            DrawingView().model_dump(),
            status_code=_ACCEPTED,
            headers={"Retry-After": str(_RETRY_AFTER_S)},
        )
    size_bytes, parts = opened
    headers["Content-Length"] = str(size_bytes)
    return StreamingResponse(parts_of(parts, services), headers=headers, media_type=_IMAGE_TYPE)


def _result_of(store: ObjectStore, page: Page) -> bytes:
    """Return the JSON of a page, ``null`` where there is none."""
    if page.result_key is None or page.state != PageState.OK:
        return b"null"
    start, stop = page.result_start or 0, page.result_stop or 0
    return gzip.decompress(store.read_range(page.result_key, start=start, stop=stop))


def _open_if_there(store: ObjectStore, key: str) -> tuple[int, Iterator[bytes]] | None:
    try:
        return open_object(store, key)
    except ObjectNotFoundError:
        return None


def _require_drawable(store: ObjectStore, page: Page) -> None:
    """Ask whether a page was found, not long ago, to be one that cannot be drawn.

    Raises:
        ApiError: it was; the answer says why.
    """
    key = keys.page_image_error_key(page.document_id, page.generation, page.page_index)
    try:
        code, _, counts_until_s = store.get(key).decode().partition(" ")
    except ObjectNotFoundError:
        return
    if time.time() >= float(counts_until_s or 0):
        return
    raise ApiError("no_image", extra={"page_error": {"code": code, "message": sentence(code)}})


def _draw(services: Services, tenant: str, document_id: UUID, index: int) -> None:
    """Ask a worker for an image.

    Raises:
        ApiError: there is no room for it, or none for this tenant, or the broker is away.
    """
    try:
        has_room = services.send_drawing(document_id, index, tenant=tenant)
    except DispatchError as error:
        raise ApiError("busy") from error
    if not has_room:
        raise ApiError("too_many_images")
