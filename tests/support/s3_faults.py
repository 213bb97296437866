"""An S3 server in front of the real one that does as it is told: slow, refusing, or forgetful."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_REFUSAL = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
_NOT_FORWARDED = frozenset({"expect", "connection", "transfer-encoding", "content-length"})


class FaultyS3(ThreadingHTTPServer):
    """Hands requests on with the host that the client signed.

    Attributes:
        delay_s: how long each request that ``delayed`` matches waits before it is handed on.
        delayed: of method and path, as ``GET /bucket/documents/…/source``.
        is_refusing: whether everything is answered with 503.
        refused: how many requests were.
        arrived: how many requests that ``delayed`` matches began to wait.
    """

    daemon_threads = True

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(endpoint_url).netloc
        self.delay_s = 0.0
        self.delayed = re.compile("")
        self.is_refusing = False
        self.refused = 0
        self.arrived = 0

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def slow(self, delay_s: float, matching: str = "") -> Iterator[None]:
        """Delay requests for as long as the block lasts, those that have begun to wait too."""
        self.arrived = 0
        self.delayed = re.compile(matching)
        self.delay_s = delay_s
        try:
            yield
        finally:
            self.delay_s = 0.0

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Answer everything with 503 for as long as the block lasts."""
        self.refused = 0
        self.is_refusing = True
        try:
            yield
        finally:
            self.is_refusing = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients of these tests are killed in the middle of a request."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyS3
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.is_refusing:
            self.server.refused += 1
            self._send(503, [("Content-Type", "application/xml")], _REFUSAL)
            return
        self._wait()
        upstream = HTTPConnection(self.server.upstream, timeout=60)
        try:
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _NOT_FORWARDED
            }
            upstream.request(self.command, self.path, body=body, headers=headers)
            answer = upstream.getresponse()
            self._send(answer.status, answer.getheaders(), answer.read())
        finally:
            upstream.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - http.server's names

    def _wait(self) -> None:
        if not (self.server.delay_s and self.server.delayed.search(f"{self.command} {self.path}")):
            return
        self.server.arrived += 1
        began = time.monotonic()
        while time.monotonic() - began < self.server.delay_s:  # 0 lets go who waits
            threading.Event().wait(0.02)

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length":
                length = value  # of a HEAD, which has no body
            elif name.lower() not in _NOT_FORWARDED:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def faulty_s3(endpoint_url: str) -> Iterator[FaultyS3]:
    """Serve in front of ``endpoint_url`` until the block ends."""
    with FaultyS3(endpoint_url) as server:
        thread = threading.Thread(target=server.serve_forever, name="faulty S3")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
