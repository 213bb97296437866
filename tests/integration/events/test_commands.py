"""The commands that take objects in, as users meet them."""

import json
from pathlib import Path

import pytest

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

    database = Database(database_url, pool_size=1)
    keys = [row.source["key"] for row in documents_in(database)]
    database.dispose()
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert sorted(keys) == ["in/a b+c%20ü\n.pdf", "in/b.pdf"]
    assert first.stderr.splitlines()[-1] == "Done: 2 objects (2 accepted)"
    assert second.stderr.splitlines()[-1] == "Done: 2 objects (2 known)"


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
    assert "the store refused 1 objects" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("s3-events",), "PAGEFLEET_S3_EVENTS_QUEUE_URL is not set"),
        (("reconcile", "--prefix", "scans/in"), "no address of a bucket"),
        (("reconcile", "--prefix", "s3://"), "no address of a bucket"),
        (("reconcile", "--prefix", "s3://other/in"), "no watched place lies in"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(
    settings: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    ended = run_pagefleet(*arguments, **settings, **watching("scans"))

    assert ended.returncode == 2
    assert said in ended.stderr


def test_without_a_watched_place_nothing_starts(settings: dict[str, str]) -> None:
    ended = run_pagefleet("s3-events", **settings)

    assert ended.returncode == 2
    assert "PAGEFLEET_S3_EVENTS_WATCHED names no place" in ended.stderr


def test_a_place_in_which_results_lie_keeps_the_program_from_starting(
    settings: dict[str, str], s3_bucket: S3Bucket
) -> None:
    place = {"bucket": s3_bucket.name, "tenant": "archive"}

    ended = run_pagefleet("s3-events", **settings, PAGEFLEET_S3_EVENTS_WATCHED=json.dumps([place]))

    assert ended.returncode == 2
    assert "overlaps" in ended.stderr
