"""The connection to the message broker; its faults end here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu.exceptions import KombuError, OperationalError
from redis.exceptions import RedisError

from workers.app import app


class DispatchError(Exception):
    """The message could not be sent; the row stands and the sweep sends it later."""


@contextmanager
def faults_translated() -> Iterator[None]:
    """Raise ours for whatever the broker's libraries raise inside the block.

    Raises:
        DispatchError: the broker does not answer, or refuses, as one without memory does.
    """
    try:
        yield
    except (KombuError, OperationalError, RedisError, OSError) as error:
        raise DispatchError("the message broker is not reachable, or refuses") from error


@contextmanager
def redis_client() -> Iterator[Any]:
    """Lend the client of a pooled connection, one that messages are sent through too.

    Raises:
        DispatchError: the broker does not answer, or refuses.
    """
    with faults_translated(), app.producer_or_acquire() as producer:
        yield producer.channel.client


def key(name: str) -> str:
    """Return a key as the broker's transport writes it.

    Raises:
        SettingsError: the environment is wrong.
    """
    return f"{app.conf.broker_transport_options['global_keyprefix']}{name}"


def check() -> None:
    """Ask the broker whether it answers; for readiness probes.

    Raises:
        DispatchError: it does not.
    """
    with faults_translated(), app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0)
        connection.channel()  # opening a channel pings the server
