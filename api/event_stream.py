"""Events as they go over the wire: Server-Sent Events (WHATWG HTML, section 9.2)."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import anyio
from anyio import CancelScope
from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.errors import sentence
from api.services import Services
from api.views import ErrorView, ProgressView
from db.events import ENDING, Event
from db.states import EventType

MEDIA_TYPE = "text/event-stream"
PING_S = 15.0
# The key is looked at when a stream begins: whose key was revoked is found out when it goes on.
LONGEST_S = 900.0
RETRY_MS = 2_000
_PING = b": ping\n\n"


class EventView(BaseModel):
    """The `data` of an event."""

    document_id: UUID
    type: EventType = Field(
        description="What happened, also in the field `event`. `succeeded`, `partly_succeeded`, "
        "`failed`, `cancelled` and `deleted` end the stream."
    )
    at: datetime
    generation: int = Field(description="Counts the retries, from 1.")
    progress: ProgressView
    error: ErrorView | None = Field(description="Why the document failed; null unless it did.")


def event_view(document_id: UUID, event: Event) -> EventView:
    """Return what the API tells of an event."""
    done = event.pages_ok + event.pages_failed + event.pages_skipped
    return EventView(
        document_id=document_id,
        type=event.type,
        at=event.at,
        generation=event.generation,
        progress=ProgressView(
            pages=event.page_count,
            ok=event.pages_ok,
            failed=event.pages_failed,
            skipped=event.pages_skipped,
            left=None if event.page_count is None else event.page_count - done,
        ),
        error=None
        if event.error_code is None
        else ErrorView(code=event.error_code, message=sentence(event.error_code)),
    )


def is_end(found: Sequence[Event]) -> bool:
    """Say whether a document has ended with the newest of these events."""
    return bool(found) and found[-1].type in ENDING


class EventStream(Response):
    """Sends what happened to a document, and then what happens, until it has ended.

    It takes a place of its key when it is sent, and gives it back with the connection.

    Args:
        document_id: whose events.
        found: what happened up to now and was not seen yet.
        seen: number of the event after which ``found`` begins.
        is_over: whether nothing follows ``found``.
        services: what tells of further events, and has the places.
        key_id: the key that asks.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self,
        document_id: UUID,
        found: Sequence[Event],
        *,
        seen: int,
        is_over: bool,
        services: Services,
        key_id: str | None,
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["Content-Length"]
        self._document_id = document_id
        self._found = found
        self._seen = found[-1].number if found else seen
        self._is_over = is_over
        self._services = services
        self._key_id = key_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        with self._services.stream_places.place(self._key_id):
            await send({
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            })
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel_when_gone, receive, tasks.cancel_scope)
                with anyio.move_on_after(LONGEST_S):
                    await self._send_events(send)
                await _send_part(send, b"", more_body=False)
                tasks.cancel_scope.cancel()

    async def _send_events(self, send: Send) -> None:
        with self._services.watch.watching(self._document_id, after=self._seen) as watcher:
            await _send_part(send, f"retry: {RETRY_MS}\n\n".encode() + self._encoded(self._found))
            is_over = self._is_over
            while not is_over:
                found: Sequence[Event] | None = None
                with anyio.move_on_after(PING_S):
                    found = await watcher.next()
                if found is None:
                    await _send_part(send, _PING)
                    continue
                await _send_part(send, self._encoded(found))
                is_over = not found or is_end(found)

    def _encoded(self, found: Sequence[Event]) -> bytes:
        return b"".join(
            f"id: {event.number}\nevent: {event.type.value}\n"
            f"data: {event_view(self._document_id, event).model_dump_json()}\n\n".encode()
            for event in found
        )


async def cancel_when_gone(receive: Receive, scope: CancelScope) -> None:
    """Cancel what is done for a client that closes its connection; its body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _send_part(send: Send, part: bytes, *, more_body: bool = True) -> None:
    if part or not more_body:
        await send({"type": "http.response.body", "body": part, "more_body": more_body})
