from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from db import api_keys
from db.engine import Database

runner = CliRunner()


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", database_url)


def test_a_created_key_opens_its_tenant(database_url: str) -> None:
    created = runner.invoke(app, ["keys", "create", "--tenant", "archive", "--name", "scanner"])

    database = Database(database_url, pool_size=1)
    with database.transaction() as session:
        found = api_keys.look_up(session, created.stdout.strip())
    database.dispose()
    assert created.exit_code == 0
    assert isinstance(found, api_keys.Grant)
    assert found.tenant == "archive"


def test_migrating_twice_is_fine() -> None:
    results = [runner.invoke(app, ["migrate"]) for _ in range(2)]

    assert [each.exit_code for each in results] == [0, 0]


def test_an_unreachable_database_is_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", "postgresql://nobody:hush@127.0.0.1:9/none")

    result = runner.invoke(app, ["migrate"])

    assert result.exit_code == 1
    assert "PAGEFLEET_DATABASE_URL" in result.stderr
    assert "hush" not in result.stderr
