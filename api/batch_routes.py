"""Batches: documents that were submitted together."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Query, Response

from api import cursor as cursors
from api.batch_sources import NewBatch, ObjectSources, objects_to_row, source_to_row
from api.document_routes import MAX_DOCUMENTS, IdCursor, IdempotencyKey, list_of
from api.errors import ApiError
from api.ledger import BatchClosedError, Ledger, ServicesOfProcess, TenantLedger
from api.place_settings import AllowedSources
from api.plan_batch import count_objects
from api.problems import declared
from api.upload_form import resolve_options
from api.views import BatchPage, BatchPlanView, BatchView, DocumentPage, batch_view
from db.errors import DuplicateRowError
from db.ids import new_id
from db.models import Batch
from db.retrying import Retry
from db.states import DocumentState, Priority

MAX_BATCHES = 100
_CREATED = 201
_ACCEPTED = 202
_REFUSALS = {
    Retry.NOTHING_TO_RETRY: "nothing_to_retry",
    Retry.BATCH_IS_BEING_CANCELLED: "batch_closed",
}

router = APIRouter(tags=["batches"])


@router.post(
    "/v1/batches",
    status_code=_CREATED,
    response_model=BatchView,
    responses={
        200: {"model": BatchPlanView, "description": "With `dry_run`: what was counted."},
        **declared(
            "malformed_body",
            "unauthenticated",
            "source_not_allowed",
            "body_too_large",
            "invalid_request",
            "idempotency_mismatch",
            "bucket_not_found",
            "listing_refused",
            "invalid_manifest",
            "source_not_found",
            "source_refused",
            "too_many_dry_runs",
            "too_many_listings",
            "storage_unavailable",
            "database_unavailable",
        ),
    },
)
async def create_batch(
    new: NewBatch,
    ledger: Ledger,
    services: ServicesOfProcess,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> BatchView | Response:
    """Create a batch; documents name it as their `batch_id`, or it is filled from a bucket.

    Objects of a bucket are found after the answer, page by page, and each becomes one document,
    however often it is named; `listing` says how far that is. They have to lie in a place that the
    operator allows. A manifest is read to its end before the first of its objects becomes a
    document.
    """
    if new.dry_run:
        counted = await services.in_counting_thread(
            ledger.tenant, partial(count_objects, new, tenant=ledger.tenant, services=services)
        )
        return Response(counted.model_dump_json(), media_type="application/json")
    view, is_replayed = await anyio.to_thread.run_sync(
        _create, new, ledger, services.settings.api_sources, idempotency_key
    )
    if is_replayed:
        response.headers["Idempotent-Replayed"] = "true"
    response.headers["Location"] = view.links.self
    return view


@router.post(
    "/v1/batches/{batch_id}/objects",
    status_code=_ACCEPTED,
    responses=declared(
        "malformed_body",
        "unauthenticated",
        "source_not_allowed",
        "not_found",
        "batch_closed",
        "body_too_large",
        "invalid_request",
        "too_many_listings",
        "database_unavailable",
    ),
)
def add_objects(
    batch_id: UUID, new: ObjectSources, ledger: Ledger, services: ServicesOfProcess
) -> BatchView:
    """Fill a batch with more objects; sent again, those that it has are not added twice."""  # noqa: DOC501 - it is the description that users read
    source = objects_to_row(
        new.objects,
        ledger.options_of_batch(batch_id),
        services.settings.api_sources,
        tenant=ledger.tenant,
    )
    try:
        ledger.add_source(batch_id, source)
    except BatchClosedError as error:
        raise ApiError("batch_closed") from error
    return batch_view(*ledger.batch(batch_id))


@router.get(
    "/v1/batches",
    responses=declared("unauthenticated", "invalid_request", "database_unavailable"),
)
def list_batches(
    ledger: Ledger,
    limit: Annotated[int, Query(ge=1, le=MAX_BATCHES)] = 20,
    cursor: IdCursor = None,
) -> BatchPage:
    """List batches, newest first. Batches that are created meanwhile do not shift the pages."""
    before = None if cursor is None else cursors.decode_id(cursor)
    found = ledger.batches(limit=limit + 1, before=before)
    has_more = len(found) > limit
    return BatchPage(
        batches=[batch_view(*each) for each in found[:limit]],
        next_cursor=cursors.encode_id(found[limit - 1][0].id) if has_more else None,
    )


@router.get(
    "/v1/batches/{batch_id}",
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def read_batch(batch_id: UUID, ledger: Ledger) -> BatchView:
    """Say where a batch and its documents stand."""
    return batch_view(*ledger.batch(batch_id))


@router.post(
    "/v1/batches/{batch_id}/cancel",
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def cancel_batch(batch_id: UUID, ledger: Ledger) -> BatchView:
    """Cancel all documents of a batch that are not final; it takes no further ones.

    Sent again, it is answered the same. Of a large batch some documents may still be open in the
    answer: they end one after the other, within minutes.
    """
    ledger.cancel_batch(batch_id)
    return batch_view(*ledger.batch(batch_id))


@router.post(
    "/v1/batches/{batch_id}/retry",
    status_code=_ACCEPTED,
    responses=declared(
        "unauthenticated",
        "not_found",
        "nothing_to_retry",
        "batch_closed",
        "invalid_request",
        "too_many_listings",
        "system_full",
        "database_unavailable",
    ),
)
def retry_batch(
    batch_id: UUID,
    ledger: Ledger,
    services: ServicesOfProcess,
    *,
    only_failed: Annotated[
        bool, Query(description="Leave documents out that were cancelled.")
    ] = False,
) -> BatchView:
    """Read again what was not read of the documents of a batch that have ended by now.

    As a retry of each of them does. Of a large batch most are sent again after the answer, one
    after the other; `is_retrying` says until when. A document that fails once more is not retried.
    """  # noqa: DOC501 - it is the description that users read
    services.admission.require_room(Priority.BULK)
    outcome = ledger.retry_batch(batch_id, cancelled_too=not only_failed)
    if outcome is not Retry.STARTED:
        raise ApiError(_REFUSALS[outcome])
    return batch_view(*ledger.batch(batch_id))


@router.get(
    "/v1/batches/{batch_id}/documents",
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def list_batch_documents(
    batch_id: UUID,
    ledger: Ledger,
    limit: Annotated[int, Query(ge=1, le=MAX_DOCUMENTS)] = 20,
    cursor: IdCursor = None,
    state: Annotated[DocumentState | None, Query(description="Only those in this state.")] = None,
) -> DocumentPage:
    """List the documents of a batch, newest first."""
    ledger.batch(batch_id)
    return list_of(ledger, limit=limit, cursor=cursor, batch_id=batch_id, state=state)


def _create(
    new: NewBatch,
    ledger: TenantLedger,
    allowed: AllowedSources,
    idempotency_key: str | None,
) -> tuple[BatchView, bool]:
    """Return the batch of a request, and whether an earlier one has made it."""
    resolve_options({}, new.options)
    source = source_to_row(new, new.options, allowed, tenant=ledger.tenant)
    batch = Batch(
        id=new_id(),
        tenant=ledger.tenant,
        name=new.name,
        options=new.options,
        idempotency_key=idempotency_key,
    )
    batch_id = batch.id
    try:
        ledger.add_batch(batch, source)
    except DuplicateRowError as error:
        batch_id = _replayed(new, source, idempotency_key or "", ledger, error)
    return batch_view(*ledger.batch(batch_id)), batch_id != batch.id


def _replayed(
    new: NewBatch,
    source: Mapping[str, Any] | None,
    idempotency_key: str,
    ledger: TenantLedger,
    error: DuplicateRowError,
) -> UUID:
    """Return the batch that has the key already, if it was made by the same request.

    Raises:
        ApiError: it was made by another request.
    """
    earlier = ledger.batch_of_key(idempotency_key)
    if earlier is None:
        raise error
    is_same = (earlier.name, earlier.options) == (new.name, new.options)
    if not is_same or not ledger.is_first_source(earlier.id, source):
        raise ApiError("idempotency_mismatch") from error
    return earlier.id
