"""Connections whose server has to answer: a stopped one still acknowledges what it is sent.

The kernel keeps up a connection whose process is stopped, so that neither TCP's own limits nor the
server's ``statement_timeout`` end the wait for it. The client's clock does.
"""

from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import Engine, event

R = TypeVar("R")
_LOOK_S = 0.1  # psycopg's own: how often it looks up while it waits


def require_answers(engine: Engine, *, within_s: float) -> None:
    """Let every wait of the engine's connections end after ``within_s`` seconds.

    A connection that waited in vain is closed: what its server does with the statement is not
    known, and an answer that came later would be taken for that of the next one.
    """

    class TimelyConnection(_TimelyConnection):
        answer_timeout_s = within_s

    @event.listens_for(engine, "do_connect")
    def connect(
        _dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]
    ) -> psycopg.Connection[Any]:
        return TimelyConnection.connect(*arguments, **options)


class _TimelyConnection(psycopg.Connection[Any]):
    answer_timeout_s: float

    def wait(self, gen: PQGen[R], interval: float = _LOOK_S, timeout: float | None = None) -> R:
        """Do one exchange with the server.

        Raises:
            psycopg.OperationalError: it has not answered in time, and the connection is closed.
        """
        limit_s = self.answer_timeout_s if timeout is None else timeout
        deadline = monotonic() + limit_s
        try:
            return super().wait(gen, interval=interval, timeout=limit_s)
        except psycopg.OperationalError:
            if monotonic() >= deadline:
                self.pgconn.finish()
            raise
