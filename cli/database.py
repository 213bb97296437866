"""``pagefleet migrate`` and ``pagefleet keys``: what an operator does to the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from cli.console import notices, output
from cli.errors import CommandError

keys = typer.Typer(no_args_is_help=True, help="Keys that callers of the API present.")


def migrate() -> None:
    """Bring the database to the newest schema; safe to run twice, and twice at once."""
    from db.migrate import migrate as apply_migrations

    with _database_errors():
        apply_migrations(_database_url())
    notices().print("The database has the newest schema.")


@keys.command("create")
def create_key(
    *,
    tenant: Annotated[str, typer.Option(help="Whose documents the key opens.")],
    name: Annotated[str, typer.Option(help="What the key is for, to tell it from others.")],
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    from db import api_keys
    from db.engine import Database

    database = Database(_database_url(), pool_size=1)
    try:
        with _database_errors(), database.transaction() as session:
            key = api_keys.create(session, tenant=tenant, name=name)
    finally:
        database.dispose()
    output().print(key, markup=False)
    notices().print("Keep it now: it cannot be shown again.")


def _database_url() -> str:
    from cli.settings import DatabaseSettings, adopt_running_stack, load_settings

    adopt_running_stack()
    return load_settings(DatabaseSettings).database_url.get_secret_value()


@contextmanager
def _database_errors() -> Iterator[None]:
    from db.errors import DatabaseError, DatabaseUnavailableError

    try:
        yield
    except DatabaseUnavailableError as error:
        raise CommandError(
            str(error), "Check PAGEFLEET_DATABASE_URL and that the server runs."
        ) from error
    except DatabaseError as error:
        raise CommandError(str(error), "The server's log says more; is it migrated?") from error
