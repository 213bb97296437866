"""What a storm does to a broker from outside."""

from contextlib import suppress
from typing import Final

from redis import Redis
from redis.exceptions import RedisError

_TIMEOUT_S: Final = 5.0


def flush(url: str) -> None:
    """Let the broker forget everything; one that does not answer has."""
    with suppress(RedisError), _client(url) as client:
        client.flushall()


def disconnect_all(url: str) -> None:
    """Break every connection to the broker."""
    with suppress(RedisError), _client(url) as client:
        for kind in ("normal", "pubsub"):
            client.client_kill_filter(_type=kind, skipme=True)


def key_count(url: str) -> int:
    """Return the number of keys; -1 when the broker does not answer."""
    try:
        with _client(url) as client:
            return int(client.dbsize())
    except RedisError:
        return -1


def _client(url: str) -> Redis:
    return Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)
