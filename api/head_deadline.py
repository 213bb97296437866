"""HTTP connections whose client has to send a whole head in time.

The server limits idle connections between requests, and nothing else: whoever connects and sends
half a head, or one byte a minute, would keep a connection for ever.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def timely_protocol(timeout_s: float) -> type[asyncio.Protocol]:
    """Return the server's protocol, with a limit on the time in which a head arrives."""

    class TimelyProtocol(_TimelyHeadProtocol):
        head_timeout_s = timeout_s

    return TimelyProtocol


class _TimelyHeadProtocol(H11Protocol):
    """Closes a connection that has not sent a head in ``head_timeout_s`` seconds.

    They run from when it is opened, or from the first byte of a further request.
    """

    head_timeout_s: float
    _head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the server's own
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _look(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()  # the head is there
        elif self._head_deadline is None and self.conn.trailing_data[0]:
            self._start()

    def _start(self) -> None:
        self._head_deadline = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _stop(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _give_up(self) -> None:
        self._head_deadline = None
        self.transport.close()
