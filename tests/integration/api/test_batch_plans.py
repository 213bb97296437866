"""Dry runs of batches that would be filled from buckets: what they count, and change nothing."""

import pytest

from api.cursor import encode_place
from tests.support.api_server import RunningApi, documents_in, keys_in
from tests.support.batch_requests import (
    batches_in,
    create_batch,
    manifest_text,
    objects_of,
    prefix_of,
    put_text,
)
from tests.support.listing import put_all, rules_for, take_turn
from tests.support.services import S3Bucket


@pytest.fixture
def api(bucket_api: RunningApi) -> RunningApi:
    return bucket_api


def test_a_dry_run_counts_and_changes_nothing(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.png", "in/b.jpg"], body=lambda _: b"x" * 10)
    put_all(scans, ["in/c.pdf"], body=lambda _: b"x" * 120_000)
    before = keys_in(api.store)

    answer = create_batch(api.client, **prefix_of(scans), dry_run=True)

    assert (answer.status_code, answer.json()) == (
        200,
        {
            "files": 3,
            "size_bytes": 120_020,
            "pages": 2,
            "estimated_pages": 2,
            "missing": 0,
            "skipped": 0,
            "seconds": None,
            "next_cursor": None,
        },
    )
    assert batches_in(api) == documents_in(api.database) == []
    assert keys_in(api.store) == before
    assert not take_turn(api.database, api.store, rules_for(scans))


def test_a_dry_run_of_a_manifest_or_of_names_looks_at_the_objects(
    api: RunningApi, scans: S3Bucket
) -> None:
    put_all(scans, ["in/a.png"])
    put_text(scans, "in/m.ndjson", manifest_text(scans, ["in/a.png", "in/none.png"]))

    by_manifest = create_batch(
        api.client, manifest={"bucket": scans.name, "key": "in/m.ndjson"}, dry_run=True
    ).json()
    by_name = create_batch(
        api.client, **objects_of(scans, "in/a.png", "in/none.png"), dry_run=True
    ).json()

    assert by_manifest == by_name
    assert (by_name["files"], by_name["missing"], by_name["pages"]) == (1, 1, 1)


def test_a_dry_run_names_what_is_wrong(api: RunningApi, scans: S3Bucket) -> None:
    put_text(scans, "in/m.csv", "path\nnothing\n")

    answers = [
        create_batch(api.client, manifest={"bucket": scans.name, "key": "in/m.csv"}, dry_run=True),
        create_batch(api.client, manifest={"bucket": scans.name, "key": "in/n.csv"}, dry_run=True),
        create_batch(api.client, **prefix_of(scans), dry_run=True, cursor="in"),
    ]

    assert [answer.status_code for answer in answers] == [422] * 3
    assert [answer.json()["code"] for answer in answers] == [
        "invalid_manifest",
        "source_not_found",
        "invalid_request",
    ]
    assert answers[2].json()["errors"][0]["field"] == "cursor"


def test_a_dry_run_goes_on_where_another_ended(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a b.png", "in/c.png", "in/d.png"])

    plan = create_batch(
        api.client, **prefix_of(scans), dry_run=True, cursor=encode_place("in/a%20b.png")
    ).json()

    assert plan["files"] == 2
