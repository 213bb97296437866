import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.main import app
from db import api_keys
from db.engine import Database

runner = CliRunner()


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", database_url)


def keys(*arguments: str) -> Result:
    return runner.invoke(app, ["keys", *arguments])


def create(*arguments: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(
        keys("create", "--tenant", "archive", "--name", "scanner", "--json", *arguments).stdout
    )
    return made


def listed(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in keys("list", "--json", *arguments).stdout.splitlines()]


def test_a_key_is_made_with_its_quotas_and_printed_once() -> None:
    made = create("--max-open-pages", "500", "--max-pages-per-day", "9000")

    (shown,) = listed()
    assert made["key"].startswith(f"pf_{made['id']}_")
    assert (shown["id"], shown["max_open_pages"], shown["max_pages_per_day"]) == (
        made["id"],
        500,
        9_000,
    )
    assert made["key"].rpartition("_")[2] not in json.dumps(shown)


def test_a_quota_is_set_and_taken_away_one_by_one() -> None:
    key_id = create("--max-open-pages", "500")["id"]

    keys("quota", key_id, "--max-pages-per-day", "9000")
    (both,) = listed()
    keys("quota", key_id, "--max-open-pages", "0")
    (one,) = listed()

    assert (both["max_open_pages"], both["max_pages_per_day"]) == (500, 9_000)
    assert (one["max_open_pages"], one["max_pages_per_day"]) == (None, 9_000)


def test_a_revoked_key_opens_nothing_and_is_listed_as_such(database_url: str) -> None:
    made = create()

    # The whole key, as it is at hand, does as well as its id.
    revoked = keys("revoke", made["key"])

    database = Database(database_url, pool_size=1)
    with database.transaction() as session:
        tenant = api_keys.tenant_of(session, made["key"])
    database.dispose()
    assert revoked.exit_code == 0
    assert made["key"] not in revoked.output
    assert tenant is None
    assert "scanner (revoked)" in keys("list").stdout


def test_keys_of_one_tenant_are_listed() -> None:
    create()
    keys("create", "--tenant", "other", "--name", "x")

    assert [key["tenant"] for key in listed("--tenant", "archive")] == ["archive"]


@pytest.mark.parametrize("command", ["revoke", "quota"])
def test_a_key_that_nobody_has_is_an_error_with_a_remedy(command: str) -> None:
    result = keys(command, "0123")

    assert result.exit_code == 1
    assert "keys list" in result.stderr
