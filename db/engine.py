"""Connections and transactions; SQLAlchemy's exceptions end here."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
import sqlalchemy
from sqlalchemy import exc, text
from sqlalchemy.orm import Session

from db.answer_deadline import require_answers
from db.ended_connections import replace_ended
from db.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    DuplicateRowError,
    OutcomeUnknownError,
)

Transaction = Callable[[], AbstractContextManager[Session]]
"""What a use case is given: each call opens one transaction, committed when its block ends."""

__all__ = ["Database", "Session", "Transaction"]

# Past what a query of ours needs by far: a lock or a plan gone wrong must not stop a worker.
LOCK_TIMEOUT_S = 10
STATEMENT_TIMEOUT_S = 60
# Nothing of ours waits inside a transaction. A process that is stopped in one would keep its locks
# for as long as it is stopped, and with them every other worker from the document.
IDLE_TIMEOUT_S = 10
CONNECT_TIMEOUT_S = 5
# For a peer that is gone without a word, where data are on their way to it.
TCP_TIMEOUT_S = 30
# The server's own limit comes first, so that a statement that is only slow keeps its connection.
_LATE_ANSWER_S = 1


class Database:
    """One process's connections to Postgres; make it after a fork, never before."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 2,
        max_connections: int | None = None,
        answer_timeout_s: float | None = None,
    ) -> None:
        """Describe the database.

        Args:
            url: its address.
            pool_size: how many connections are kept open.
            max_connections: how many there may be at once; None: three times those kept.
            answer_timeout_s: for one statement, also where the server is stopped and says nothing;
                None: as long as the server itself allows, for work that can wait.
        """
        statement_timeout_s = answer_timeout_s or STATEMENT_TIMEOUT_S
        self.max_connections = max_connections or 3 * pool_size
        self._engine = sqlalchemy.create_engine(
            driver_url(url),
            pool_size=pool_size,
            max_overflow=self.max_connections - pool_size,
            hide_parameters=True,  # file names of users must not come into a logged traceback
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_S,
                "tcp_user_timeout": TCP_TIMEOUT_S * 1_000,
                "keepalives_idle": TCP_TIMEOUT_S,  # else two hours, for one that waits in the pool
                "prepare_threshold": None,  # prepared statements break behind PgBouncer
                "application_name": "pagefleet",
                "options": (
                    f"-c lock_timeout={1_000 * min(LOCK_TIMEOUT_S, statement_timeout_s):.0f}"
                    f" -c statement_timeout={1_000 * statement_timeout_s:.0f} -c timezone=UTC"
                    f" -c idle_in_transaction_session_timeout={1_000 * IDLE_TIMEOUT_S}"
                ),
            },
        )
        replace_ended(self._engine)
        if answer_timeout_s is not None:
            require_answers(self._engine, within_s=answer_timeout_s + _LATE_ANSWER_S)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Open a transaction, commit it at the end of the block, roll back on an exception.

        Raises:
            DatabaseUnavailableError: no connection, or it was lost, or a lock or statement took too
                long; nothing was changed.
            OutcomeUnknownError: the connection was lost in the COMMIT; see ``db.known_outcome``.
            DuplicateRowError: a unique rule is violated.
            DatabaseError: any other refusal.
        """
        is_committing = False
        try:
            with Session(self._engine, expire_on_commit=False) as session, session.begin():
                yield session
                # So that what comes after is the COMMIT and nothing else.
                session.flush()
                is_committing = True
        except exc.IntegrityError as error:
            # Without its cause: Postgres repeats the whole row in the text, file names and all.
            refusal = _refused(error)
            raise refusal from None
        except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError) as error:
            kind = DatabaseUnavailableError
            if is_committing and not _is_answered(error):
                kind = OutcomeUnknownError
            raise kind(what_is_unavailable(error)) from error
        except exc.SQLAlchemyError as error:
            if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
                kind = OutcomeUnknownError if is_committing else DatabaseUnavailableError
                raise kind("the database connection was lost") from error
            raise DatabaseError(f"the database refused: {type(error).__name__}") from error

    def check(self) -> None:
        """Ask the database for an answer; for readiness probes."""
        with self.transaction() as session:
            session.execute(text("SELECT 1"))

    def dispose(self) -> None:
        """Close the pooled connections."""
        self._engine.dispose()


def driver_url(url: str) -> str:
    """Return ``url`` with psycopg 3 as its driver, however the user wrote the scheme."""
    scheme, separator, rest = url.partition("://")
    if scheme in {"postgres", "postgresql"}:
        return f"postgresql+psycopg{separator}{rest}"
    return url


def what_is_unavailable(error: exc.SQLAlchemyError) -> str:
    """Say in a sentence why the database could not do what it can do at other times."""
    cause = error.orig if isinstance(error, exc.DBAPIError) else None
    match cause:
        case psycopg.errors.LockNotAvailable():
            return "what had to be changed stayed locked for too long"
        case psycopg.errors.QueryCanceled():
            return "a statement took too long, or an operator stopped it"
        case psycopg.errors.DeadlockDetected() | psycopg.errors.SerializationFailure():
            return "the database rolled back one of two transactions that met"
        case None if isinstance(error, exc.TimeoutError):
            return "no connection of the pool came free"
    return "the database is not reachable"


def _is_answered(error: exc.SQLAlchemyError) -> bool:
    """Whether the server itself has answered a COMMIT with its refusal, and rolled back.

    FATAL is no such answer: whoever ends a connection may do so just after the COMMIT.
    """
    if isinstance(error, exc.DBAPIError) and isinstance(error.orig, psycopg.Error):
        return error.orig.diag.severity_nonlocalized == "ERROR"
    return False


def _refused(error: exc.IntegrityError) -> DatabaseError:
    if not isinstance(error.orig, psycopg.Error):
        return DatabaseError(f"the database refused: {type(error.orig).__name__}")
    constraint = error.orig.diag.constraint_name
    if isinstance(error.orig, psycopg.errors.UniqueViolation):
        return DuplicateRowError(constraint or "?")
    place = constraint or error.orig.diag.column_name or "?"
    return DatabaseError(f"the database refused: {type(error.orig).__name__} of {place}")
