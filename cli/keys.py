"""``pagefleet keys``: who may call the API, for what, until when, and how much each may send."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.console import notices, output, print_json_line
from cli.database import database_errors, database_url
from cli.errors import EXIT_USAGE, CommandError
from cli.key_list import described, print_records, record_of

if TYPE_CHECKING:
    from db.engine import Session
    from db.key_models import ApiKey
    from db.scopes import Scope

app = typer.Typer(no_args_is_help=True, help="Keys that callers of the API present.")

_MOST_DAYS = 36_500

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
MaxRequestsPerMinute = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Most requests that it may make a minute; 0: any."),
]
Scopes = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="What it may do: read, write, webhooks; commas between."),
]
ExpiresDays = Annotated[
    float | None,
    typer.Option(
        min=0, max=_MOST_DAYS, metavar="DAYS", help="For how long it is valid; 0: for ever."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a key.")]
KeyName = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="Its id, as `keys list` shows it: the part between 'pf_' and the next '_'; or the"
        " whole key; or its name, if no other has it.",
    ),
]


@app.command("create")
def create_key(
    *,
    tenant: Annotated[str, typer.Option(help="Whose documents the key opens.")],
    name: Annotated[str, typer.Option(help="What the key is for, to tell it from others.")],
    scopes: Scopes = None,
    expires_days: ExpiresDays = None,
    max_open_pages: MaxOpenPages = None,
    max_pages_per_day: MaxPagesPerDay = None,
    max_requests_per_minute: MaxRequestsPerMinute = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once: only its hash is kept.

    Unless told otherwise it may do everything, and does not expire.
    """
    from db import api_keys

    allowed = _scopes_in(scopes)
    with _session() as session:
        made = api_keys.create(
            session,
            tenant=tenant,
            name=name,
            scopes=allowed,
            expires_in=_duration(expires_days),
            max_open_pages=max_open_pages or None,
            max_pages_per_day=max_pages_per_day or None,
            max_requests_per_minute=max_requests_per_minute or None,
        )
        session.flush()
        record = record_of(api_keys.get(session, api_keys.id_of(made)))
    if as_json:
        print_json_line({"key": made, **record})
    else:
        output().print(made, markup=False)
        notices().print(described(record), markup=False)
    notices().print("Keep it now: it cannot be shown again.")


@app.command("list")
def list_keys(
    *,
    tenant: Annotated[str | None, typer.Option(help="Only those of this tenant.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the keys: what each may do and send, has sent today, and which are of no use any more.

    Never a secret. When a key was last used is up to five minutes behind.
    """
    from db import admission, api_keys

    with _session() as session:
        records = [
            record_of(key)
            | {"pages_today": use.pages_today, "documents_today": use.documents_today}
            for key in api_keys.list_all(session, tenant=tenant)
            for use in [admission.key_use(session, tenant=key.tenant, key_id=key.id)]
        ]
    _show(records, as_json=as_json)


@app.command("rotate")
def rotate_key(
    named: KeyName,
    *,
    grace_hours: Annotated[
        float,
        typer.Option(
            min=0,
            max=_MOST_DAYS * 24,
            metavar="HOURS",
            help="For how long the old secret works on.",
        ),
    ] = 24,
    revoke_old: Annotated[
        bool, typer.Option("--revoke-old", help="End the old secret at once, as after a leak.")
    ] = False,
    expires_days: ExpiresDays = None,
    as_json: AsJson = False,
) -> None:
    """Give a key a new secret and print it, this once; the old one works on for a day.

    A key has two secrets at most: rotating again ends the older one. Scopes, quotas and what was
    sent stay; without --expires-days, so does the day on which it expires.
    """
    from db import api_keys

    grace = timedelta() if revoke_old else timedelta(hours=grace_hours)
    with _session() as session:
        key = _find_key(session, named)
        _require_use(key, expires_days)
        rotated = api_keys.rotate(session, key, grace=grace)
        if expires_days is not None:
            api_keys.expire(session, key, _duration(expires_days))
        record, end_of_old = record_of(key), _end_of_old(key, grace)
    if as_json:
        print_json_line({"key": rotated, **record})
    else:
        output().print(rotated, markup=False)
    notices().print(f"Keep it now: it cannot be shown again. {end_of_old}")


@app.command("revoke")
def revoke_key(named: KeyName, *, as_json: AsJson = False) -> None:
    """Take a key out of use, for good; the API believes it for some seconds more.

    What was sent with it is read all the same.
    """
    from db import api_keys

    with _session() as session:
        record = record_of(api_keys.revoke(session, _find_key(session, named).id))
    if as_json:
        print_json_line(record)
    else:
        notices().print(f"The key {record['id']} ({record['name']}) is revoked.", markup=False)


@app.command("change")
def change_key(
    named: KeyName,
    *,
    scopes: Scopes = None,
    expires_days: ExpiresDays = None,
    as_json: AsJson = False,
) -> None:
    """Set what a key may do, and until when; what is left out stays as it is."""
    from db import api_keys

    allowed = None if scopes is None else _scopes_in(scopes)
    with _session() as session:
        key = _find_key(session, named)
        if allowed is not None:
            key.scopes = [*allowed]
        if expires_days is not None:
            api_keys.expire(session, key, _duration(expires_days))
        record = record_of(key)
    _show([record], as_json=as_json)


@app.command("quota")
def set_quota(
    named: KeyName,
    *,
    max_open_pages: MaxOpenPages = None,
    max_pages_per_day: MaxPagesPerDay = None,
    max_requests_per_minute: MaxRequestsPerMinute = None,
    as_json: AsJson = False,
) -> None:
    """Set the quotas and the rate of a key; what is left out stays as it is."""
    with _session() as session:
        key = _find_key(session, named)
        if max_open_pages is not None:
            key.max_open_pages = max_open_pages or None
        if max_pages_per_day is not None:
            key.max_pages_per_day = max_pages_per_day or None
        if max_requests_per_minute is not None:
            key.max_requests_per_minute = max_requests_per_minute or None
        record = record_of(key)
    _show([record], as_json=as_json)


def _show(records: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for record in records:
            print_json_line(record)
    else:
        print_records(records)


def _scopes_in(given: str | None) -> "list[Scope]":
    from db.scopes import Scope

    if given is None:
        return [*Scope]
    names = {name.strip() for name in given.split(",")}
    if unknown := names - {*Scope}:
        raise CommandError(
            f"no scope is called {', '.join(sorted(unknown)) or 'nothing'}",
            f"Name some of {', '.join(Scope)}, with commas between them.",
            exit_code=EXIT_USAGE,
        )
    return [scope for scope in Scope if scope in names]


def _duration(days: float | None) -> timedelta | None:
    return timedelta(days=days) if days else None


def _find_key(session: "Session", given: str) -> "ApiKey":
    """Find a key to be changed.

    Whoever pastes the whole key means its id, and should not see it again.
    """
    from db import api_keys
    from db.errors import RowNotFoundError

    key_id = api_keys.id_of(given)
    try:
        return api_keys.get(session, key_id)
    except RowNotFoundError as error:
        named = api_keys.ids_of_name(session, given)
        if len(named) > 1:
            raise CommandError(
                f"{len(named)} keys are called {given}", f"Name an id: {', '.join(named)}."
            ) from error
        if not named:
            is_whole_key = given.startswith(f"{api_keys.PREFIX}_")
            raise CommandError(
                f"no key has the id or name {key_id if is_whole_key else given}",
                "`pagefleet keys list` shows them.",
            ) from error
    return api_keys.get(session, named[0])


def _require_use(key: "ApiKey", expires_days: float | None) -> None:
    """Refuse to print a secret that opens nothing."""
    if key.revoked_at is not None:
        raise CommandError(
            f"the key {key.id} ({key.name}) is revoked", "Make another: `pagefleet keys create`."
        )
    if expires_days is None and record_of(key)["state"] == "expired":
        raise CommandError(
            f"the key {key.id} ({key.name}) has expired",
            "Say for how long the new secret is valid: --expires-days.",
        )


def _end_of_old(key: "ApiKey", grace: timedelta) -> str:
    until = key.previous_secret_until
    if not grace or until is None:
        return "The API believes the old one for some seconds more."
    return f"The old one works until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC."


@contextmanager
def _session() -> Iterator["Session"]:
    from db.engine import Database

    database = Database(database_url(), pool_size=1)
    try:
        with database_errors(), database.transaction() as session:
            yield session
    finally:
        database.dispose()
