"""One request to an endpoint that a stranger chose: checked, limited, and never followed further.

Not by an HTTP client: those resolve names themselves, follow redirects, and take proxies from the
environment. What is needed is one POST and the number that it is answered with.
"""

import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from ipaddress import ip_address

from workers.webhook_target import (
    IpAddress,
    WebhookTargetError,
    WebhookUrl,
    require_allowed,
)

# What an endpoint may say before the number of its answer is known.
_MOST_BYTES = 16 * 2**10
_READ_BYTES = 2**12
_MOST_ADDRESSES = 4
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n]*)?\r\n")
_HEAD_END = b"\r\n\r\n"
_FIRST_FINAL = 200

Resolve = Callable[[str, int], Sequence[str]]


class WebhookPostError(Exception):
    """The request had no answer; ``code`` says why, for users."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system orders them.

    Raises:
        OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class WebhookPoster:
    """Sends messages, each over a connection of its own.

    Args:
        timeout_s: for one message, from the first connection to the answer. Resolving the name
            counts, and ends by the limits of the system.
        allow_loopback: whether this machine itself may be reached.
        resolve: asks for the addresses of a name, once for a message.
        context: whom TLS trusts; by default whom the system does.
    """

    def __init__(
        self,
        *,
        timeout_s: float,
        allow_loopback: bool,
        resolve: Resolve = resolve,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._allow_loopback = allow_loopback
        self._resolve = resolve
        self._context = context or ssl.create_default_context()

    def post(self, url: WebhookUrl, body: bytes, headers: Mapping[str, str]) -> int:
        """Send a message; return the status of the answer, whose content nobody reads.

        Raises:
            WebhookPostError: the URL leads where it must not, or there was no answer in time.
        """
        deadline = time.monotonic() + self._timeout_s
        addresses = self._addresses(url)
        try:
            with closing(self._connect(url, addresses, deadline)) as connection:
                _limit(connection, deadline)
                connection.sendall(_request(url, body, headers))
                return _status(connection, deadline)
        except TimeoutError as error:
            raise WebhookPostError("timeout") from error
        except ssl.SSLError as error:
            raise WebhookPostError("tls") from error
        except OSError as error:
            raise WebhookPostError("unreachable") from error

    def _addresses(self, url: WebhookUrl) -> Sequence[IpAddress]:
        """Return the addresses of a host, every one of which may be connected to.

        Raises:
            WebhookPostError: there is none, or one of them may not.
        """
        try:
            found = [ip_address(each) for each in self._resolve(url.host, url.port)]
            for address in found:
                require_allowed(address, is_plain=url.is_plain, allow_loopback=self._allow_loopback)
        except WebhookTargetError as error:
            raise WebhookPostError("forbidden_address") from error
        except (OSError, ValueError) as error:
            raise WebhookPostError("unresolved") from error
        if not found:
            raise WebhookPostError("unresolved")
        return found[:_MOST_ADDRESSES]

    def _connect(
        self, url: WebhookUrl, addresses: Sequence[IpAddress], deadline: float
    ) -> socket.socket:
        """Connect to the first address that answers: to these, and not to the name again."""
        failure: OSError | None = None
        for number, address in enumerate(addresses):
            # A share for each, so that one that swallows everything does not take all of the time.
            left_s = (deadline - time.monotonic()) / (len(addresses) - number)
            family = socket.AF_INET6 if address.version == 6 else socket.AF_INET  # noqa: PLR2004 - of the Internet Protocol
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(max(left_s, 0.001))
                connection.connect((str(address), url.port))
                if url.is_plain:
                    return connection
                _limit(connection, deadline)
                # The name and not the address is what the certificate has to be of.
                return self._context.wrap_socket(connection, server_hostname=url.host)
            except BaseException as error:
                connection.close()
                if not isinstance(error, OSError) or isinstance(error, ssl.SSLError):
                    raise
                failure = error
        raise failure or OSError("no address")


def _request(url: WebhookUrl, body: bytes, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"POST {url.path} HTTP/1.1",
        f"Host: {url.authority}",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _status(connection: socket.socket, deadline: float) -> int:
    """Read an answer up to the number in it.

    Raises:
        WebhookPostError: it is none of HTTP/1, or too long.
        TimeoutError: it did not come in time, byte by byte or at all.
    """
    read = b""
    size_bytes = 0
    while size_bytes < _MOST_BYTES:
        found = _STATUS_LINE.match(read)
        if found is not None and int(found[1]) >= _FIRST_FINAL:
            return int(found[1])
        if found is not None and _HEAD_END in read:  # "100 Continue" and the like
            read = read.partition(_HEAD_END)[2]
            continue
        _limit(connection, deadline)
        part = connection.recv(_READ_BYTES)
        if not part:
            break
        size_bytes += len(part)
        read += part
    raise WebhookPostError("not_http")


def _limit(connection: socket.socket, deadline: float) -> None:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    connection.settimeout(left_s)
