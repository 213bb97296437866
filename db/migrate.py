"""Bring a database to the newest schema."""

from pathlib import Path

import alembic.command
import alembic.config
import sqlalchemy
from sqlalchemy import exc, text

from db.engine import driver_url
from db.errors import DatabaseError, DatabaseUnavailableError

_LOCK = 0x50616765666C6565  # "Pageflee", an advisory lock that only migrations take


def migrate(url: str) -> None:
    """Apply all migrations that the database does not have yet; safe to run twice at once.

    Raises:
        DatabaseUnavailableError: the database cannot be reached.
        DatabaseError: a migration failed; it was rolled back.
    """
    configuration = alembic.config.Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    engine = sqlalchemy.create_engine(driver_url(url), poolclass=sqlalchemy.NullPool)
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            connection.execute(text("SET LOCAL lock_timeout = '10s'"))
            configuration.attributes["connection"] = connection
            alembic.command.upgrade(configuration, "head")
    except exc.OperationalError as error:
        raise DatabaseUnavailableError("the database is not reachable") from error
    except exc.SQLAlchemyError as error:
        raise DatabaseError(f"the migration failed: {type(error).__name__}") from error
    finally:
        engine.dispose()
