"""What happens to a document, told while it happens."""

from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Header, Response

from api.event_stream import MEDIA_TYPE, EventStream, is_end
from api.event_watch import BATCH
from api.ledger import Ledger, ServicesOfProcess
from api.problems import declared
from api.views import is_final

_NO_CONTENT = 204
_LARGEST_NUMBER = 2**31 - 1

router = APIRouter(tags=["documents"])

LastEventId = Annotated[
    int,
    Header(
        alias="Last-Event-ID",
        ge=0,
        le=_LARGEST_NUMBER,
        description="`id` of the last event that was seen; what follows it is sent.",
    ),
]
_STREAM: dict[str, Any] = {
    "description": "Server-Sent Events; the `data` of each is an `EventView`.",
    "content": {MEDIA_TYPE: {"schema": {}}},
}


@router.get(
    "/v1/documents/{document_id}/events",
    response_class=Response,
    responses={
        200: _STREAM,
        _NO_CONTENT: {"description": "The document has ended, and its end was seen."},
        **declared(
            "unauthenticated",
            "not_found",
            "invalid_request",
            "too_many_streams",
            "database_unavailable",
        ),
    },
)
async def stream_events(
    document_id: UUID,
    ledger: Ledger,
    services: ServicesOfProcess,
    last_event_id: LastEventId = 0,
) -> Response:
    """Tell what happened to a document, and what happens, until it has ended.

    Browsers' `EventSource` goes on by itself where a connection breaks; any other client sends the
    `id` of the last event that it saw as `Last-Event-ID`.
    """
    document, found = await anyio.to_thread.run_sync(
        ledger.events, document_id, last_event_id, BATCH
    )
    is_all = len(found) < BATCH
    if is_final(document) and not found:
        return Response(status_code=_NO_CONTENT)
    return EventStream(
        document_id,
        found,
        seen=last_event_id,
        # What ended before its end was written down has an end that no event tells.
        is_over=is_all and (is_end(found) or is_final(document)),
        services=services,
        key_id=ledger.key_id,
    )
