"""An endpoint of a tenant: takes webhooks, and answers as its test tells it."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class ReceivedWebhook:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> Any:
        return json.loads(self.body)


@dataclass
class WebhookReceiver:
    """What an endpoint has got; ``answer`` says what it answers, and may take its time."""

    url: str = ""
    answer: Callable[[ReceivedWebhook], int] = lambda _: 204
    received: list[ReceivedWebhook] = field(default_factory=list)
    location: str | None = None

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port


@contextmanager
def receiving(
    answer: Callable[[ReceivedWebhook], int] | None = None,
    *,
    context: ssl.SSLContext | None = None,
) -> Iterator[WebhookReceiver]:
    """Run an endpoint on this machine."""
    receiver = WebhookReceiver()
    if answer is not None:
        receiver.answer = answer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size_bytes = int(self.headers["Content-Length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = ReceivedWebhook(self.path, headers, self.rfile.read(size_bytes))
            receiver.received.append(got)
            self.send_response(receiver.answer(got))
            if receiver.location is not None:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Say nothing of clients that have gone."""

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    receiver.url = f"{scheme}://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
