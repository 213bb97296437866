"""Bodies that are read whole are limited while they arrive."""

from collections.abc import Set as AbstractSet

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 2**20
_TOO_LARGE = 413


class BodyLimit:
    """Refuses a body of more than ``MAX_BODY_BYTES``, whatever length it announces.

    The framework's own limit answers in plain text, before anybody is authenticated.

    Args:
        app: what stands behind.
        streamed: method and path of the operations that count for themselves.
    """

    def __init__(self, app: ASGIApp, streamed: AbstractSet[tuple[str, str]]) -> None:
        self._app = app
        self._streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) in self._streamed:
            await self._app(scope, receive, send)
            return
        size_bytes = 0

        async def receive_limited() -> Message:
            nonlocal size_bytes
            message = await receive()
            size_bytes += len(message.get("body", b""))
            if size_bytes > MAX_BODY_BYTES:
                raise HTTPException(_TOO_LARGE)
            return message

        await self._app(scope, receive_limited, send)
