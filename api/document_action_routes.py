"""What can be done to a document that was sent: cancel it, retry it, delete it."""

from uuid import UUID

from fastapi import APIRouter, Response

from api.document_routes import RETRY_AFTER_S
from api.errors import ApiError
from api.ledger import Ledger, ServicesOfProcess
from api.problems import declared
from api.views import DocumentView, document_view
from db.retrying import Retry
from db.states import OPEN_DOCUMENT_STATES, DocumentState, Priority

_ACCEPTED = 202
_NO_CONTENT = 204
_REFUSALS = {
    Retry.STILL_OPEN: "not_ready",
    Retry.NOTHING_TO_RETRY: "nothing_to_retry",
    Retry.BATCH_IS_BEING_CANCELLED: "batch_closed",
}

router = APIRouter(tags=["documents"])


@router.post(
    "/v1/documents/{document_id}/cancel",
    responses=declared(
        "unauthenticated", "not_found", "already_final", "invalid_request", "database_unavailable"
    ),
)
def cancel_document(document_id: UUID, ledger: Ledger) -> DocumentView:
    """End a document that is not final; sent again, it is answered the same.

    Whoever reads it stops within seconds, at the end of a page. Pages that were read stay in the
    ledger, and a retry goes on from them.
    """  # noqa: DOC501 - it is the description that users read
    state = ledger.cancel_document(document_id)
    if state not in {*OPEN_DOCUMENT_STATES, DocumentState.CANCELLED}:
        raise ApiError("already_final")
    return document_view(ledger.document(document_id))


@router.post(
    "/v1/documents/{document_id}/retry",
    status_code=_ACCEPTED,
    responses=declared(
        "unauthenticated",
        "not_found",
        "nothing_to_retry",
        "not_ready",
        "batch_closed",
        "invalid_request",
        "system_full",
        "database_unavailable",
    ),
)
def retry_document(
    document_id: UUID, ledger: Ledger, services: ServicesOfProcess, response: Response
) -> DocumentView:
    """Read again what was not read of a document that failed, in part or whole, or was cancelled.

    Good pages are kept. An earlier result can be fetched until the new one takes its place.
    """  # noqa: DOC501 - it is the description that users read
    services.admission.require_room(Priority(ledger.document(document_id).document.priority))
    outcome = ledger.retry_document(document_id)
    if outcome is not Retry.STARTED:
        raise ApiError(_REFUSALS[outcome])
    entry = ledger.document(document_id)
    services.admission.note_accepted(entry.document)
    view = document_view(entry)
    response.headers["Location"] = view.links.self
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return view


@router.delete(
    "/v1/documents/{document_id}",
    status_code=_NO_CONTENT,
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def delete_document(document_id: UUID, ledger: Ledger, services: ServicesOfProcess) -> None:
    """Delete a document, its file and its results, whatever state it is in.

    It is gone for everybody at once, and cannot be brought back; storage is cleared a little later.
    """
    ledger.delete_document(document_id, writers_s=services.settings.task_hard_limit_s)
