"""What can be done to a document that was sent: cancel it, retry it, delete it."""

from uuid import UUID

from fastapi import APIRouter

from api.errors import ApiError
from api.ledger import Ledger
from api.problems import declared
from api.views import DocumentView, document_view
from db.states import OPEN_DOCUMENT_STATES, DocumentState

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
