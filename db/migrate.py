"""Bring a database to the newest schema."""

from pathlib import Path

import alembic.command
import alembic.config
import sqlalchemy
from alembic.util.exc import CommandError
from sqlalchemy import exc, text

from db.engine import LOCK_TIMEOUT_S, driver_url, what_is_unavailable
from db.errors import DatabaseError, DatabaseUnavailableError

_LOCK = 0x50616765666C6565  # "Pageflee", an advisory lock that only migrations take


def migrate(url: str) -> None:
    """Apply all migrations that the database does not have yet; safe to run twice at once.

    Raises:
        DatabaseUnavailableError: the database cannot be reached, or a table stayed locked.
        DatabaseError: a migration failed and was rolled back, or the schema is not one of ours.
    """
    configuration = alembic.config.Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    engine = sqlalchemy.create_engine(
        driver_url(url), poolclass=sqlalchemy.NullPool, hide_parameters=True
    )
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'"))
            configuration.attributes["connection"] = connection
            alembic.command.upgrade(configuration, "head")
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
