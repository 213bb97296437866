"""``pagefleet keys``: who may call the API, and how much each may send."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli.console import notices, output, print_json_line
from cli.database import database_errors, database_url
from cli.errors import CommandError

if TYPE_CHECKING:
    from db.engine import Session
    from db.models import ApiKey

app = typer.Typer(no_args_is_help=True, help="Keys that callers of the API present.")

MaxOpenPages = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Most pages of documents that are not final; 0: no quota."
    ),
]
MaxPagesPerDay = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Most pages that it may send a day (UTC); 0: no quota."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a key.")]
KeyId = Annotated[
    str, typer.Argument(metavar="ID", help="Of the key: the part between 'pf_' and the next '_'.")
]


@app.command("create")
def create_key(
    *,
    tenant: Annotated[str, typer.Option(help="Whose documents the key opens.")],
    name: Annotated[str, typer.Option(help="What the key is for, to tell it from others.")],
    max_open_pages: MaxOpenPages = None,
    max_pages_per_day: MaxPagesPerDay = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    from db import api_keys

    with _session() as session:
        key = api_keys.create(
            session,
            tenant=tenant,
            name=name,
            max_open_pages=max_open_pages or None,
            max_pages_per_day=max_pages_per_day or None,
        )
    if as_json:
        print_json_line({"id": api_keys.id_of(key), "key": key, "tenant": tenant, "name": name})
    else:
        output().print(key, markup=False)
    notices().print("Keep it now: it cannot be shown again.")


@app.command("list")
def list_keys(
    *,
    tenant: Annotated[str | None, typer.Option(help="Only those of this tenant.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the keys, what each may send and has sent today, and which are revoked."""
    from db import admission, api_keys

    with _session() as session:
        records = [
            _record(key) | {"pages_today": use.pages_today, "documents_today": use.documents_today}
            for key in api_keys.list_all(session, tenant=tenant)
            for use in [admission.key_use(session, tenant=key.tenant, key_id=key.id)]
        ]
    if as_json:
        for record in records:
            print_json_line(record)
    else:
        _print(records)


@app.command("revoke")
def revoke_key(key_id: KeyId, *, as_json: AsJson = False) -> None:
    """Take a key out of use, for good; the API believes it for some seconds more.

    What was sent with it is read all the same.
    """
    from db import api_keys

    with _session() as session:
        record = _record(api_keys.revoke(session, _id_in(key_id)))
    if as_json:
        print_json_line(record)
    else:
        notices().print(f"The key {record['id']} ({record['name']}) is revoked.", markup=False)


@app.command("quota")
def set_quota(
    key_id: KeyId,
    *,
    max_open_pages: MaxOpenPages = None,
    max_pages_per_day: MaxPagesPerDay = None,
    as_json: AsJson = False,
) -> None:
    """Set the quotas of a key; what is left out stays as it is."""
    from db import api_keys

    with _session() as session:
        key = api_keys.get(session, _id_in(key_id))
        if max_open_pages is not None:
            key.max_open_pages = max_open_pages or None
        if max_pages_per_day is not None:
            key.max_pages_per_day = max_pages_per_day or None
        record = _record(key)
    if as_json:
        print_json_line(record)
    else:
        _print([record])


def _record(key: "ApiKey") -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "max_open_pages": key.max_open_pages,
        "max_pages_per_day": key.max_pages_per_day,
        "created_at": key.created_at.isoformat(),
        "revoked_at": key.revoked_at and key.revoked_at.isoformat(),
    }


def _print(records: list[dict[str, Any]]) -> None:
    columns = ("id", "tenant", "name", "max_open_pages", "max_pages_per_day", "pages_today")
    console = output()
    if not console.is_terminal:
        for record in records:
            console.print("  ".join(_cell(record, column) for column in columns), markup=False)
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "))
    for record in records:
        table.add_row(*(escape(_cell(record, column)) for column in columns))
    console.print(table)


def _cell(record: dict[str, Any], column: str) -> str:
    value = record.get(column)
    if column == "name" and record["revoked_at"]:
        return f"{value} (revoked)"
    return "-" if value is None else str(value)


def _id_in(given: str) -> str:
    """Return the id; whoever pastes the whole key means its id, and should not see it again."""
    from db import api_keys

    return api_keys.id_of(given)


@contextmanager
def _session() -> Iterator["Session"]:
    from db.engine import Database
    from db.errors import RowNotFoundError

    database = Database(database_url(), pool_size=1)
    try:
        with database_errors(), database.transaction() as session:
            try:
                yield session
            except RowNotFoundError as error:
                raise CommandError(str(error), "`pagefleet keys list` shows their ids.") from error
    finally:
        database.dispose()
