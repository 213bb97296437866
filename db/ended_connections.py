"""Connections that ended while they waited in the pool, found without a question to the server.

A question (``pool_pre_ping``) is a transaction of its own before each one, which doubles them.
"""

import select
from typing import Any

import psycopg
from sqlalchemy import Engine, event, exc
from sqlalchemy.pool import ConnectionPoolEntry

_HAS_SERVED = "has_served"


def replace_ended(engine: Engine) -> None:
    """Let the engine's pool give out fresh connections in place of ended ones.

    The first that is found ended renews the others too: most often it was the server that
    restarted. What ends after the look fails in its transaction, as it did after a question.
    """

    @event.listens_for(engine, "checkout")
    def look(
        connection: psycopg.Connection[Any], entry: ConnectionPoolEntry, _proxy: object
    ) -> None:
        # A fresh one is not looked at: the pool gives up after two that ended, with an error that
        # does not say that the server is away.
        has_served = entry.info.setdefault(_HAS_SERVED, False)
        entry.info[_HAS_SERVED] = True
        if has_served and _has_ended(connection):
            raise exc.InvalidatePoolError("the connection has ended")


def _has_ended(connection: psycopg.Connection[Any]) -> bool:
    if connection.closed:
        return True
    # Between two transactions a server says nothing but that it ends the connection; the kernel
    # tells of a peer that is gone in the same way.
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLRDHUP)
    return bool(poll.poll(0))
