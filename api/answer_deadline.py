"""Requests are answered in time, whatever hangs behind them."""

import math

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import ApiError

_DEADLINE = "answer_deadline"


def lift(scope: Scope) -> None:
    """Let a request take longer; whoever asks for that has a limit of his own."""
    scope["state"][_DEADLINE].deadline = math.inf


class AnswerDeadline:
    """Refuses with ``busy`` what has no answer in time: it waits for a thread that waits itself.

    The time ends when an answer begins, so that a result may be read slowly, and when a streamed
    body is first asked for: uploads have limits of their own. A call that runs in a thread is not
    broken off; the limits of database and storage end it.

    Args:
        app: what stands behind.
        timeout_s: for the answer.
        streamed: method and path of the operations whose bodies may take longer.
    """

    def __init__(
        self, app: ASGIApp, timeout_s: float, streamed: frozenset[tuple[str, str]]
    ) -> None:
        self._app = app
        self._timeout_s = timeout_s
        self._streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_streamed = (scope["method"], scope["path"]) in self._streamed
        is_receiving = False

        async def receive_noted() -> Message:
            nonlocal is_receiving
            if is_streamed:
                deadline.deadline = math.inf
            is_receiving = True
            message = await receive()
            is_receiving = False
            return message

        async def send_noted(message: Message) -> None:
            if deadline.cancel_called:
                # What ran in a thread goes on to here; its answer would be broken off half sent.
                raise ApiError("busy")
            deadline.deadline = math.inf
            await send(message)

        try:
            with anyio.fail_after(self._timeout_s) as deadline:
                scope.setdefault("state", {})[_DEADLINE] = deadline
                await self._app(scope, receive_noted, send_noted)
        except TimeoutError as error:
            if not deadline.cancelled_caught:
                raise
            # Who sends half a body and waits is late, not we.
            raise ApiError("request_timeout" if is_receiving else "busy") from error
