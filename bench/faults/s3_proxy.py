"""Stands between a fleet and its object storage, and does to requests what a bad day does.

Bytes pass as they are, so that signatures stay right; the proxy knows of HTTP only where a request
begins: at the first bytes from the client after those of an answer.
"""

import asyncio
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal

Trouble = Literal["refuse", "slow", "cut"]
"""What happens to a request: 503 SlowDown, a late answer, an answer that breaks off in the middle.
"""

_BLOCK_BYTES: Final = 64 * 1024
_START_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.02
_GO_ON: Final = b"HTTP/1.1 100 "
_END_OF_HEAD: Final = b"\r\n\r\n"
_BODY: Final = (
    b'<?xml version="1.0" encoding="UTF-8"?>'
    b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
)
_REFUSAL: Final = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


@dataclass(frozen=True, slots=True)
class Weather:
    """What requests meet from now on.

    Attributes:
        trouble: None lets all pass.
        share: of the requests that meet it, in [0, 1].
        delay_s: of a slow answer, at most: it ends with the weather.
        matching: a pattern of method and path, as ``^PUT .*/chunks/``; others pass.
    """

    trouble: Trouble | None = None
    share: float = 1.0
    delay_s: float = 2.0
    matching: str = ""


class S3Proxy:
    """Listens on a loopback port of its own, in a thread of its own.

    Args:
        port: of the storage, on the loopback address.
        seed: of the choice of requests.

    Attributes:
        weather: may be set at any time.
        troubled: requests that met trouble, those included that it holds at this time.
    """

    def __init__(self, port: int, *, seed: int = 0) -> None:
        self.weather = Weather()
        self.troubled = 0
        self._storage_port = port
        self._choose = random.Random(seed)  # noqa: S311 - which request fails is nobody's secret
        self._loop = asyncio.new_event_loop()
        self._port: int | None = None
        self._is_listening = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="s3-proxy", daemon=True)

    @property
    def endpoint_url(self) -> str:
        """Where clients connect; once it is started."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen.

        Raises:
            TimeoutError: the thread did not come to listen.
        """
        self._thread.start()
        if not self._is_listening.wait(_START_TIMEOUT_S):
            raise TimeoutError("the proxy does not listen")

    def stop(self) -> None:
        """Break off what is under way and stop listening."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_START_TIMEOUT_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        await self._stop.wait()
        server.close()

    async def _accept(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            storage, request = await asyncio.open_connection("127.0.0.1", self._storage_port)
        except OSError:
            answer.close()
            return
        connection = _Connection(self, client, answer, storage, request)
        try:
            await connection.carry()
        finally:
            for stream in (answer, request):
                with suppress(OSError, RuntimeError):
                    stream.close()

    @contextmanager
    def during(self, weather: Weather) -> Iterator[None]:
        """Let requests meet this weather in the block, and count anew those that met trouble."""
        self.troubled = 0
        self.weather = weather
        try:
            yield
        finally:
            self.weather = Weather()

    def trouble_of(self, request: bytes) -> Weather | None:
        """Return what a request that begins with these bytes meets; None: nothing."""
        weather = self.weather
        target = request.partition(b" HTTP/")[0].decode("ascii", "replace")
        if weather.trouble is None or not re.search(weather.matching, target):
            return None
        if self._choose.random() >= weather.share:
            return None
        self.troubled += 1
        return weather

    async def wait_out(self, weather: Weather) -> None:
        """Return after the delay of this weather, or soon after it has changed."""
        until_s = self._loop.time() + weather.delay_s
        while self.weather is weather and self._loop.time() < until_s:  # noqa: ASYNC110 - set by threads
            await asyncio.sleep(_POLL_S)


class _Connection:
    """One connection of a client, and the one to the storage that belongs to it."""

    def __init__(
        self,
        proxy: S3Proxy,
        client: asyncio.StreamReader,
        answer: asyncio.StreamWriter,
        storage: asyncio.StreamReader,
        request: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._answer = answer
        self._storage = storage
        self._request = request
        self._is_answering = True  # so that the first bytes begin a request
        self._is_cut = False

    async def carry(self) -> None:
        """Carry bytes both ways until either side ends, or trouble does."""
        ways = [asyncio.create_task(way()) for way in (self._carry_requests, self._carry_answers)]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry_requests(self) -> None:
        while block := await self._client.read(_BLOCK_BYTES):
            if self._is_answering:
                self._is_answering = False
                weather = self._proxy.trouble_of(block)
                if weather is not None and weather.trouble == "refuse":
                    self._answer.write(_REFUSAL)
                    await self._answer.drain()
                    return
                if weather is not None and weather.trouble == "slow":
                    await self._proxy.wait_out(weather)
                self._is_cut = weather is not None and weather.trouble == "cut"
            self._request.write(block)
            await self._request.drain()

    async def _carry_answers(self) -> None:
        while block := await self._storage.read(_BLOCK_BYTES):
            # "Go on" is no answer: the body of the request follows it.
            self._is_answering = not block.startswith(_GO_ON)
            is_cut = self._is_cut and self._is_answering
            # The storage has done what it was asked for; the client does not come to know it.
            self._answer.write(_cut(block) if is_cut else block)
            await self._answer.drain()
            if is_cut:
                return


def _cut(block: bytes) -> bytes:
    """Return an answer up to the middle of its body; nothing of one without a body.

    A client takes half a head for a whole one.
    """
    head, separator, body = block.partition(_END_OF_HEAD)
    return head + separator + body[: len(body) // 2] if body else b""
