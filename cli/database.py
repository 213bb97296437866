"""``pagefleet migrate``, and how commands reach the database."""

from collections.abc import Iterator
from contextlib import contextmanager

from cli.console import notices
from cli.errors import CommandError


def migrate() -> None:
    """Bring the database to the newest schema; safe to run twice, and twice at once."""
    from db.migrate import migrate as apply_migrations

    with database_errors():
        apply_migrations(database_url())
    notices().print("The database has the newest schema.")


def database_url() -> str:
    """Return the address of the database: the running stack's, or that of the settings.

    Raises:
        CommandError: neither names one.
    """
    from cli.settings import (
        DatabaseSettings,
        adopt_running_stack,
        is_worker_configured,
        load_settings,
    )
    from cli.stack.absent import absent_stack
    from workers.settings import home_dir

    adopt_running_stack()
    if not is_worker_configured():
        absent = absent_stack(home_dir(), otherwise="name a database in PAGEFLEET_DATABASE_URL")
        if absent is not None:
            raise absent
    return load_settings(DatabaseSettings).database_url.get_secret_value()


@contextmanager
def database_errors() -> Iterator[None]:
    """Tell what a database refuses in words of the command line.

    Raises:
        CommandError: it cannot be reached, or refused.
    """
    from db.errors import DatabaseError, DatabaseUnavailableError

    try:
        yield
    except DatabaseUnavailableError as error:
        raise CommandError(
            str(error), "Check PAGEFLEET_DATABASE_URL and that the server runs."
        ) from error
    except DatabaseError as error:
        raise CommandError(str(error), "The server's log says more; is it migrated?") from error
