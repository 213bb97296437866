"""Bring a database to the newest schema."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import alembic.command
import alembic.config
import psycopg
import sqlalchemy
from alembic.util.exc import CommandError
from sqlalchemy import Engine, exc, text

from db.engine import driver_url, what_is_unavailable
from db.errors import DatabaseError, DatabaseUnavailableError

_LOCK = 0x50616765666C6565  # "Pageflee", an advisory lock that only migrations take
# Whoever comes after a statement that waits for a lock waits too: so for a moment, and often.
_LOCK_TIMEOUT_S = 3
_LOCK_TRIES = 40
_PAUSE_S = 1.0


def migrate(url: str, *, lock_tries: int = _LOCK_TRIES) -> None:
    """Apply all migrations that the database does not have yet; safe to run twice at once.

    Each is a transaction of its own, so that no table stays locked while others are changed. What
    breaks off in between is gone on with the next time.

    Args:
        url: of the database; of Postgres itself, since it needs one session throughout.
        lock_tries: how often a change is tried whose table others hold.

    Raises:
        DatabaseUnavailableError: the database cannot be reached, or a table stayed locked.
        DatabaseError: a migration failed and was rolled back, or the schema is not one of ours.
    """
    engine = sqlalchemy.create_engine(
        driver_url(url),
        poolclass=sqlalchemy.NullPool,
        hide_parameters=True,
        connect_args={"options": f"-c lock_timeout={_LOCK_TIMEOUT_S}s"},
    )
    try:
        with _alone(engine):
            _upgrade(engine, lock_tries)
    except exc.OperationalError as error:
        raise DatabaseUnavailableError(what_is_unavailable(error)) from error
    except CommandError as error:
        raise DatabaseError(
            "the database has a schema that this version does not know; a newer Pagefleet has "
            "migrated it, so install that version"
        ) from error
    except exc.SQLAlchemyError as error:
        raise DatabaseError(f"the migration failed: {type(error).__name__}") from error
    finally:
        engine.dispose()


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Keep others from migrating while the block lasts, by a transaction that does nothing else.

    Who has to wait asks again and again: a statement that waits has a snapshot, and an index that
    is built beside others waits for the end of all snapshots.
    """
    while True:
        with engine.begin() as connection:
            if connection.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _LOCK}):
                # After the question, which keeps its snapshot until another statement follows.
                connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
                yield
                return
        threading.Event().wait(_PAUSE_S)


def _upgrade(engine: Engine, lock_tries: int) -> None:
    configuration = alembic.config.Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    for tries_left in reversed(range(lock_tries)):
        try:
            with engine.connect() as connection:
                configuration.attributes["connection"] = connection
                alembic.command.upgrade(configuration, "head")
        except exc.OperationalError as error:
            if not tries_left or not _is_in_the_way(error):
                raise
        else:
            return
        threading.Event().wait(_PAUSE_S)


def _is_in_the_way(error: exc.OperationalError) -> bool:
    """Whether a transaction of somebody else was met, which ends sooner or later."""
    return isinstance(error.orig, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected)
