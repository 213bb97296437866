import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import text
from typer.testing import CliRunner

from cli.main import app
from db import api_keys
from db.api_keys import Grant, Refusal
from db.engine import Database

runner = CliRunner()


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", database_url)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, pool_size=1)
    yield database
    database.dispose()


def look_up(database: Database, key: str) -> Grant | Refusal:
    with database.transaction() as session:
        return api_keys.look_up(session, key)


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


def test_a_new_key_is_told_apart_from_what_is_known_of_it() -> None:
    result = keys(
        *("create", "--tenant", "archive", "--name", "scanner", "--scopes", "read"),
        *("--max-pages-per-day", "5"),
    )

    (key,) = result.stdout.split()
    assert f"the key {key.split('_')[1]} (scanner) of the tenant archive: read;" in result.stderr
    assert "at most 5 pages a day; does not expire" in result.stderr
    assert key not in result.stderr


def test_a_list_of_keys_has_a_heading_over_each_column() -> None:
    key_id = create("--max-pages-per-day", "5")["id"]

    heading, row = keys("list").stdout.splitlines()

    assert heading.split()[:3] == ["id", "tenant", "name"]
    assert row.split()[0] == key_id
    assert row[heading.index("max pages per day")] == "5"
    assert row[heading.index("pages today")] == "0"


def test_a_quota_is_set_and_taken_away_one_by_one() -> None:
    key_id = create("--max-open-pages", "500")["id"]

    keys("quota", key_id, "--max-pages-per-day", "9000")
    (both,) = listed()
    keys("quota", key_id, "--max-open-pages", "0")
    (one,) = listed()

    assert (both["max_open_pages"], both["max_pages_per_day"]) == (500, 9_000)
    assert (one["max_open_pages"], one["max_pages_per_day"]) == (None, 9_000)


def test_a_revoked_key_opens_nothing_and_is_listed_as_such(database: Database) -> None:
    made = create()

    # The whole key, as it is at hand, does as well as its id.
    revoked = keys("revoke", made["key"])

    assert revoked.exit_code == 0
    assert made["key"] not in revoked.output
    assert look_up(database, made["key"]) is Refusal.REVOKED
    assert "scanner (revoked)" in keys("list").stdout


def test_keys_of_one_tenant_are_listed() -> None:
    create()
    keys("create", "--tenant", "other", "--name", "x")

    assert [key["tenant"] for key in listed("--tenant", "archive")] == ["archive"]


def test_a_key_may_do_everything_and_does_not_expire_unless_that_is_said(
    database: Database,
) -> None:
    made = create()

    found = look_up(database, made["key"])

    assert isinstance(found, Grant)
    assert found.scopes == {"read", "write", "webhooks"}
    assert found.expires_in_s is None
    assert (made["state"], made["expires_at"]) == ("active", None)


def test_a_key_is_made_with_scopes_an_end_and_a_rate(database: Database) -> None:
    made = create(*(
        "--scopes",
        "write, read",
        "--expires-days",
        "90",
        "--max-requests-per-minute",
        "600",
    ))

    found = look_up(database, made["key"])

    assert isinstance(found, Grant)
    assert found.scopes == {"read", "write"}
    assert found.expires_in_s == pytest.approx(90 * 86_400, abs=60)
    assert found.max_requests_per_minute == 600
    assert made["scopes"] == ["read", "write"]
    assert "read,write" in keys("list").stdout


@pytest.mark.parametrize("scopes", ["read,admin", "", ","])
def test_a_scope_that_there_is_not_is_an_error_of_usage(scopes: str) -> None:
    result = keys("create", "--tenant", "archive", "--name", "scanner", "--scopes", scopes)

    assert result.exit_code == 2
    assert "read, write, webhooks" in result.stderr
    assert listed() == []


@pytest.mark.parametrize("named_by", ["id", "name", "key"])
def test_a_rotated_key_has_two_secrets_for_a_while(database: Database, named_by: str) -> None:
    made = create("--scopes", "read")

    result = keys("rotate", made[named_by])
    new = result.stdout.strip()

    assert result.exit_code == 0
    assert "works until" in result.stderr
    assert made["key"] not in result.output
    old_found, new_found = (look_up(database, each) for each in (made["key"], new))
    assert isinstance(old_found, Grant)
    assert isinstance(new_found, Grant)
    assert old_found.expires_in_s == pytest.approx(86_400, abs=60)
    assert new_found.expires_in_s is None
    assert new_found.scopes == {"read"}
    assert new_found.key_id == made["id"]


def test_an_old_secret_is_ended_at_once_or_when_it_is_said(database: Database) -> None:
    first = create()["key"]
    second = keys("rotate", "scanner", "--revoke-old").stdout.strip()
    ended = look_up(database, first)

    rotated = json.loads(keys("rotate", "scanner", "--grace-hours", "2", "--json").stdout)
    waiting = look_up(database, second)

    assert ended is Refusal.EXPIRED
    assert isinstance(waiting, Grant)
    assert waiting.expires_in_s == pytest.approx(7_200, abs=60)
    assert isinstance(look_up(database, rotated["key"]), Grant)
    assert rotated["previous_secret_until"] is not None


def test_no_list_shows_a_secret() -> None:
    made = create()
    rotated = keys("rotate", made["id"]).stdout.strip()

    shown = keys("list").output + keys("list", "--json").output

    for key in (made["key"], rotated):
        secret = key.rpartition("_")[2]
        assert secret not in shown
        assert hashlib.sha256(secret.encode()).hexdigest() not in shown


def test_a_name_that_two_keys_have_names_neither() -> None:
    ids = [create()["id"], create()["id"]]

    ambiguous = keys("rotate", "scanner")
    keys("revoke", ids[0])
    clear = keys("rotate", "scanner", "--json")

    assert ambiguous.exit_code == 1
    assert all(each in ambiguous.stderr for each in ids)
    assert json.loads(clear.stdout)["id"] == ids[1]


def test_a_revoked_key_is_not_rotated() -> None:
    made = create()
    keys("revoke", made["id"])

    result = keys("rotate", made["id"])

    assert result.exit_code == 1
    assert "keys create" in result.stderr


def test_an_expired_key_is_rotated_with_a_new_end_alone(database: Database) -> None:
    made = create("--expires-days", "1")
    with database.transaction() as session:
        session.execute(text("UPDATE api_keys SET expires_at = now()"))
    state = listed()[0]["state"]

    refused = keys("rotate", made["id"])
    renewed = keys("rotate", made["id"], "--expires-days", "30").stdout.strip()

    assert state == "expired"
    assert refused.exit_code == 1
    assert "--expires-days" in refused.stderr
    found = look_up(database, renewed)
    assert isinstance(found, Grant)
    assert found.expires_in_s == pytest.approx(30 * 86_400, abs=60)


def test_scopes_end_and_rate_of_a_key_are_changed_one_by_one() -> None:
    key_id = create()["id"]

    keys("change", key_id, "--scopes", "read")
    keys("change", key_id, "--expires-days", "7")
    keys("quota", key_id, "--max-requests-per-minute", "60")
    (all_set,) = listed()
    keys("change", key_id, "--expires-days", "0")
    keys("quota", key_id, "--max-requests-per-minute", "0")
    (taken_away,) = listed()

    assert (all_set["scopes"], all_set["max_requests_per_minute"]) == (["read"], 60)
    assert all_set["expires_at"] is not None
    assert (taken_away["scopes"], taken_away["max_requests_per_minute"]) == (["read"], None)
    assert taken_away["expires_at"] is None


def test_a_list_says_when_a_key_was_last_used(database: Database) -> None:
    made = create()
    (before,) = listed()

    with database.transaction() as session:
        api_keys.note_use(session, made["id"])
    (after,) = listed()

    assert before["last_used_at"] is None
    assert datetime.fromisoformat(after["last_used_at"]).year >= 2026


@pytest.mark.parametrize("command", ["revoke", "quota", "rotate", "change"])
def test_a_key_that_nobody_has_is_an_error_with_a_remedy(command: str) -> None:
    result = keys(command, "0123")
    whole = keys(command, "pf_0123_4567")

    assert (result.exit_code, whole.exit_code) == (1, 1)
    assert "keys list" in result.stderr
    assert "4567" not in whole.output
