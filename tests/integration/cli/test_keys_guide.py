"""The commands of docs/keys.md, run as they stand there, one after the other."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.scopes import SCOPE_DESCRIPTIONS, SCOPE_OF_OPERATION
from cli.main import app
from db import api_keys
from db.engine import Database
from db.key_models import ApiKey
from tests.support.guides import DOCS, table_rows

COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(
        r"^```sh\n(.*?)^```$", (DOCS / "keys.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    for line in block.splitlines()
]


@pytest.fixture
def database(
    monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path
) -> Iterator[Database]:
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", database_url)
    database = Database(database_url, pool_size=1)
    yield database
    database.dispose()


def keys_by_name(database: Database) -> dict[str, ApiKey]:
    with database.transaction() as session:
        return {key.name: key for key in api_keys.list_all(session)}


def test_the_commands_do_what_the_guide_says(database: Database) -> None:
    runner = CliRunner()

    results = [runner.invoke(app, command[1:]) for command in COMMANDS]

    assert {tuple(command[:2]) for command in COMMANDS} == {("pagefleet", "keys")}
    assert [result.output for result in results if result.exit_code != 0] == []
    keys = keys_by_name(database)
    assert set(keys) == {"scanner", "reading-room", "backend"}
    assert keys["scanner"].scopes == ["write"]
    assert keys["scanner"].max_open_pages is None
    assert keys["scanner"].max_requests_per_minute == 600
    assert keys["reading-room"].scopes == ["read", "webhooks"]
    assert keys["backend"].revoked_at is not None
    assert all(key.previous_secret_until is not None for key in keys.values())


def test_every_command_of_keys_is_in_the_guide() -> None:
    assert {command[2] for command in COMMANDS} == {
        *("create", "list", "change", "rotate", "revoke", "quota")
    }


@pytest.mark.parametrize("scope", list(SCOPE_DESCRIPTIONS))
def test_the_guide_has_every_scope(scope: str) -> None:
    written = {row[0]: row[1] for row in table_rows("keys.md")}

    assert written[f"`{scope}`"] == SCOPE_DESCRIPTIONS[scope]  # type: ignore[index] # of its text


def test_what_is_about_webhooks_needs_their_scope() -> None:
    assert all(
        ("webhook" in name) == (scope == "webhooks") for name, scope in SCOPE_OF_OPERATION.items()
    )


def test_what_is_about_uploads_in_parts_needs_the_scope_for_sending() -> None:
    needed = {scope for name, scope in SCOPE_OF_OPERATION.items() if "upload" in name}

    assert needed == {"write"}
