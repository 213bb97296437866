"""The commands that take objects in, as users meet them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.stack.seaweedfs import SeaweedFS
from db.engine import Database
from tests.support.api_server import documents_in
from tests.support.commands import run_pagefleet
from tests.support.services import (
    S3Bucket,
    fresh_bucket,
    put_with_a_key_of_its_own,
    s3_client,
)

runner = CliRunner()


@pytest.fixture
def settings(database_url: str, s3_bucket: S3Bucket, tmp_path: Path) -> dict[str, str]:
    return {
        "PAGEFLEET_HOME": str(tmp_path),
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_REDIS_URL": "redis://unused",
        **s3_bucket.environment(),
    }


def watching(bucket: str) -> dict[str, str]:
    place = {"bucket": bucket, "prefix": "in/", "tenant": "archive"}
    return {"PAGEFLEET_S3_EVENTS_WATCHED": json.dumps([place])}


def test_objects_that_no_event_told_of_are_found_once(
    settings: dict[str, str], object_storage: SeaweedFS, database_url: str
) -> None:
    with fresh_bucket(object_storage) as scans:
        client = s3_client(scans)
        client.put_object(Bucket=scans.name, Key="in/a b+c%20ü\n.pdf", Body=b"%PDF-1.7")
        client.put_object(Bucket=scans.name, Key="in/b.pdf", Body=b"%PDF-1.7")
        client.put_object(Bucket=scans.name, Key="out/c.pdf", Body=b"%PDF-1.7")
        prefix = ("reconcile", "--prefix", f"s3://{scans.name}/in/")

        first = run_pagefleet(*prefix, **settings, **watching(scans.name))
        second = run_pagefleet(*prefix, **settings, **watching(scans.name))
        third = run_pagefleet(*prefix, "--json", **settings, **watching(scans.name))

    database = Database(database_url, pool_size=1)
    keys = [row.source["key"] for row in documents_in(database)]
    database.dispose()
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert sorted(keys) == ["in/a b+c%20ü\n.pdf", "in/b.pdf"]
    assert first.stderr.splitlines()[-1] == "Done: 2 objects (2 accepted)"
    assert second.stderr.splitlines()[-1] == "Done: 2 objects (2 known)"
    counted = {"objects": 2, "by_outcome": {"known": 2}}
    assert list(map(json.loads, third.stdout.splitlines())) == [
        {"is_done": False, **counted},
        {"is_done": True, **counted},
    ]


def test_an_object_that_the_store_refuses_is_named_and_passed_over(
    settings: dict[str, str], object_storage: SeaweedFS, database_url: str
) -> None:
    with fresh_bucket(object_storage) as scans:
        client = s3_client(scans)
        for name in "ac":
            client.put_object(Bucket=scans.name, Key=f"in/{name}.pdf", Body=b"%PDF-1.7")
        put_with_a_key_of_its_own(scans, "in/b.pdf")

        ended = run_pagefleet(
            *("reconcile", "--prefix", f"s3://{scans.name}/in/"),
            **settings,
            **watching(scans.name),
        )

    database = Database(database_url, pool_size=1)
    keys = [row.source["key"] for row in documents_in(database)]
    database.dispose()
    assert ended.returncode == 1
    assert sorted(keys) == ["in/a.pdf", "in/c.pdf"]
    assert "Refused: in/b.pdf" in ended.stderr
    assert "the store refused 1 object," in ended.stderr


@pytest.fixture
def _unused_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings that name servers which nobody gets to ask."""
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", "postgresql://unused")
    monkeypatch.setenv("PAGEFLEET_REDIS_URL", "redis://unused")
    monkeypatch.setenv("PAGEFLEET_S3_BUCKET", "pagefleet")


@pytest.mark.usefixtures("_unused_servers")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["s3-events"], "PAGEFLEET_S3_EVENTS_QUEUE_URL is not set"),
        (["reconcile", "--json"], "--json goes with --prefix"),
        (["reconcile", "--prefix", "scans/in"], "no address of a bucket"),
        (["reconcile", "--prefix", "s3://"], "no address of a bucket"),
        (["reconcile", "--prefix", "s3://other/in"], "no watched place lies in"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(arguments: list[str], said: str) -> None:
    ended = runner.invoke(app, arguments, env=watching("scans"))

    assert ended.exit_code == 2
    assert said in ended.stderr


@pytest.mark.usefixtures("_unused_servers")
def test_without_a_watched_place_nothing_starts() -> None:
    ended = runner.invoke(app, ["s3-events"])

    assert ended.exit_code == 2
    assert "PAGEFLEET_S3_EVENTS_WATCHED names no place" in ended.stderr


@pytest.mark.usefixtures("_unused_servers")
def test_a_place_in_which_results_lie_keeps_the_program_from_starting() -> None:
    place = {"bucket": "pagefleet", "tenant": "archive"}

    ended = runner.invoke(
        app, ["s3-events"], env={"PAGEFLEET_S3_EVENTS_WATCHED": json.dumps([place])}
    )

    assert ended.exit_code == 2
    assert "overlaps" in ended.stderr
