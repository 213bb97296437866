"""A line to Postgres on which the COMMIT of a chosen transaction gets lost, or its answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

_BLOCK_BYTES = 65_536
_COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
_ROLLBACK = b"Q\x00\x00\x00\x0dROLLBACK\x00"


@dataclass
class CommitProxy:
    """Hands on what client and server say, until it is told to lose a COMMIT.

    Attributes:
        url: the address of the database by this line.
        lost: how many COMMITs, or their answers, got lost.
    """

    _host: str
    _port: int
    url: str = ""
    lost: int = 0
    _listener: socket.socket = field(default_factory=socket.socket)
    _sockets: list[socket.socket] = field(default_factory=list)
    _marker: bytes | None = None
    _takes_effect: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lose_commit(self, *, of: str, takes_effect: bool) -> None:
        """Cut the line at the next COMMIT of a transaction in which ``of`` stands in a statement.

        ``takes_effect``: not before the server has answered it.
        """
        self._takes_effect = takes_effect
        self._marker = of.encode()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection((self._host, self._port))
            self._sockets += [client, server]
            line = _Line(self, client, server)
            for pump in (line.pump_requests, line.pump_answers):
                threading.Thread(target=pump, daemon=True).start()

    def loses(self, statements: bytes) -> bool:
        with self._lock:
            if self._marker is None or self._marker not in statements:
                return False
            self._marker = None
            self.lost += 1
            return True

    @property
    def takes_effect(self) -> bool:
        return self._takes_effect

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@dataclass
class _Line:
    proxy: CommitProxy
    client: socket.socket
    server: socket.socket
    swallows: bool = False

    def pump_requests(self) -> None:
        statements = b""
        with suppress(OSError):
            while block := self.client.recv(_BLOCK_BYTES):
                statements += block
                if block == _COMMIT and self.proxy.loses(statements):
                    if not self.proxy.takes_effect:
                        break
                    self.swallows = True
                if block in {_COMMIT, _ROLLBACK}:
                    statements = b""
                self.server.sendall(block)
        if not self.swallows:
            self._cut()

    def pump_answers(self) -> None:
        with suppress(OSError):
            while block := self.server.recv(_BLOCK_BYTES):
                if self.swallows:
                    break
                self.client.sendall(block)
        self._cut()

    def _cut(self) -> None:
        for each in (self.client, self.server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def commit_proxy(database_url: str) -> Iterator[CommitProxy]:
    """Lend a line to a database."""
    parts = urlsplit(database_url)
    assert parts.hostname is not None
    proxy = CommitProxy(parts.hostname, parts.port or 5432)
    proxy._listener.bind(("127.0.0.1", 0))
    proxy._listener.listen()
    port = proxy._listener.getsockname()[1]
    user = parts.netloc.rpartition("@")[0]
    proxy.url = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}"))
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    yield proxy
    proxy.close()
    thread.join()
