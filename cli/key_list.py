"""API keys as `pagefleet keys` shows them: never with a secret."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from cli.console import output

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
    """Print a table on a terminal, and plain lines anywhere else."""
    console = output()
    if not console.is_terminal:
        for record in records:
            console.print("  ".join(_cell(record, column) for column in _COLUMNS), markup=False)
        return
    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column.replace("_", " "))
    for record in records:
        table.add_row(*(escape(_cell(record, column)) for column in _COLUMNS))
    console.print(table)


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
