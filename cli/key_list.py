"""API keys as `pagefleet keys` shows them: never with a secret."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from cli.console import output
from cli.counting import count_of

if TYPE_CHECKING:
    from db.key_models import ApiKey

_COLUMNS: Final = (
    "id",
    "tenant",
    "name",
    "max_open_pages",
    "max_pages_per_day",
    "pages_today",
    "max_requests_per_minute",
    "scopes",
    "expires_at",
    "last_used_at",
)
_LIMITS: Final = (
    ("max_open_pages", "page", "open"),
    ("max_pages_per_day", "page", "a day"),
    ("max_requests_per_minute", "request", "a minute"),
)
_ACTIVE: Final = "active"


def record_of(key: "ApiKey") -> dict[str, Any]:
    """Return what `--json` says of a key; ``state``: active, expired or revoked."""
    times = {
        name: None if moment is None else moment.isoformat()
        for name, moment in (
            ("created_at", key.created_at),
            ("expires_at", key.expires_at),
            ("last_used_at", key.last_used_at),
            ("previous_secret_until", key.previous_secret_until),
            ("revoked_at", key.revoked_at),
        )
    }
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "state": _state(key, datetime.now(UTC)),
        "scopes": list(key.scopes),
        "max_open_pages": key.max_open_pages,
        "max_pages_per_day": key.max_pages_per_day,
        "max_requests_per_minute": key.max_requests_per_minute,
        **times,
    }


def print_records(records: list[dict[str, Any]]) -> None:
    """Print a table; anywhere but on a terminal in plain lines, which nothing wraps."""
    console = output()
    headings = [column.replace("_", " ") for column in _COLUMNS]
    rows = [[_cell(record, column) for column in _COLUMNS] for record in records]
    if not console.is_terminal:
        widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
        for row in (headings, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            console.print("  ".join(cells).rstrip(), markup=False)
        return
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def described(record: dict[str, Any]) -> str:
    """Return a key in words: what it is called, whose it is, and what it may do."""
    limits = [
        f"at most {count_of(record[column], noun)} {when}"
        for column, noun, when in _LIMITS
        if record[column] is not None
    ]
    quotas = ", ".join(limits) or "no quota"
    expires = "does not expire" if record["expires_at"] is None else "expires"
    until = "" if record["expires_at"] is None else f" at {_cell(record, 'expires_at')}"
    return (
        f"It is the key {record['id']} ({record['name']}) of the tenant {record['tenant']}:"
        f" {_cell(record, 'scopes')}; {quotas}; {expires}{until}."
    )


def _state(key: "ApiKey", now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else _ACTIVE


def _cell(record: dict[str, Any], column: str) -> str:
    value = record.get(column)
    if column == "name" and record["state"] != _ACTIVE:
        return f"{value} ({record['state']})"
    if column == "scopes":
        return ",".join(record["scopes"])
    if value is not None and column.endswith("_at"):
        return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%dT%H:%MZ}"
    return "-" if value is None else str(value)
