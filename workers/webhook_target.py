"""Where a webhook may go: to public addresses over https, and nowhere into our own network.

A tenant chooses the URL, and we connect from inside: whatever a name resolves to is looked at, and
the address that was looked at is the one that is connected to (``workers.webhook_post``).
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

IpAddress = IPv4Address | IPv6Address

MOST_CHARACTERS = 2_000
# What a request line may hold; names of other scripts are given in their ASCII form. Matched with
# the URL as it stands: there are characters of other scripts whose small letter is one of ours.
_ALLOWED = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_HOST = re.compile(r"[a-z0-9._:-]+")
_LOOPBACK_NAME = "localhost"
_PORTS = {"https": 443, "http": 80}

# Global as far as ``ipaddress`` knows, and yet not a host on the Internet.
_REFUSED_V4 = tuple(map(IPv4Network, ("192.88.99.0/24", "192.31.196.0/24", "192.52.193.0/24")))
_REFUSED_V6 = tuple(
    map(
        IPv6Network,
        (
            "::/96",  # IPv4-compatible, also :: and ::1
            "64:ff9b:1::/48",  # NAT64 of a network's own
            "100::/64",  # discarded
            "2001:20::/28",  # ORCHIDv2, no addresses
            "3fff::/20",  # documentation
            "5f00::/16",  # segment routing
            "fec0::/10",  # site-local
        ),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = re.compile(r"0[02]005efe")  # the interface identifier of a tunnel, before its address


class WebhookTargetError(Exception):
    """A webhook may not go there; the message says why, without naming an address."""


@dataclass(frozen=True, slots=True)
class WebhookUrl:
    """A URL that was checked, taken apart once, so that nobody reads it differently.

    ``path`` is what stands in the request line. ``is_plain``: without TLS.
    """

    host: str
    port: int
    path: str
    is_plain: bool

    @property
    def authority(self) -> str:
        """What the header ``Host`` says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = _PORTS["http" if self.is_plain else "https"]
        return host if self.port == default else f"{host}:{self.port}"


def parse_url(url: str, *, allow_loopback: bool) -> WebhookUrl:
    """Check the form of a URL; nothing is resolved.

    Args:
        url: what a tenant gave.
        allow_loopback: whether ``http`` may be used, to this machine itself.

    Raises:
        WebhookTargetError: it is no address of https, or one that people and programs may read
            differently.
    """
    if len(url) > MOST_CHARACTERS:
        raise WebhookTargetError(f"is longer than {MOST_CHARACTERS} characters")
    if not _ALLOWED.fullmatch(url):
        raise WebhookTargetError("holds a character that has to be percent-encoded")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise WebhookTargetError("is not a URL") from error
    if parts.scheme not in _PORTS or (parts.scheme == "http" and not allow_loopback):
        raise WebhookTargetError("has to begin with https://")
    if "@" in parts.netloc:
        raise WebhookTargetError("may hold no user name or password")
    if "#" in url:
        raise WebhookTargetError("may hold no fragment")
    if not _HOST.fullmatch(host) or port == 0:
        raise WebhookTargetError("names no host")
    if parts.scheme == "http" and not _may_be_loopback(host):
        raise WebhookTargetError("has to begin with https://")
    literal = _literal(host)
    if literal is not None:
        require_allowed(literal, is_plain=parts.scheme == "http", allow_loopback=allow_loopback)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookUrl(host, port or _PORTS[parts.scheme], path, is_plain=parts.scheme == "http")


def require_allowed(address: IpAddress, *, is_plain: bool, allow_loopback: bool) -> None:
    """Refuse an address that a webhook must not reach.

    Args:
        address: what a name was resolved to.
        is_plain: whether it would be talked to without TLS, which only this machine may be.
        allow_loopback: whether this machine itself may be reached.

    Raises:
        WebhookTargetError: it may not be connected to.
    """
    if allow_loopback and address.is_loopback:
        return
    if is_plain or not is_public(address):
        raise WebhookTargetError("leads to an address that is not public")


def is_public(address: IpAddress) -> bool:
    """Say whether an address is a host on the Internet, whatever it is wrapped in.

    ``is_global`` alone is also true of multicast, of tunnels into private networks (6to4, Teredo,
    NAT64), and of ranges that lead to no host.
    """
    if isinstance(address, IPv6Address):
        wrapped = _wrapped(address)
        if address.ipv4_mapped is not None or address in _NAT64:
            # The outer address is only a way of writing the inner one.
            return all(map(is_public, wrapped))
        if not all(map(is_public, wrapped)):
            return False
        is_refused = any(address in network for network in _REFUSED_V6) or bool(address.scope_id)
    else:
        is_refused = any(address in network for network in _REFUSED_V4)
    return (
        address.is_global
        and not is_refused
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
    )


def _wrapped(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address leads to or through."""
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    text = f"{int(address):032x}"
    if address in _NAT64 or _ISATAP.fullmatch(text[16:24]):
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]


def _literal(host: str) -> IpAddress | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _may_be_loopback(host: str) -> bool:
    literal = _literal(host)
    return host == _LOOPBACK_NAME or (literal is not None and literal.is_loopback)
