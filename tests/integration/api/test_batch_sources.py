"""Batches that are filled from buckets: by names, a manifest, or a prefix."""

import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.cursor import encode_place
from db import api_keys
from db.models import Document
from storage.errors import StorageError, StorageUnavailableError
from tests.support.api_server import RunningApi, client_of, documents_in
from tests.support.batch_requests import (
    batches_in,
    create_batch,
    manifest_text,
    objects_of,
    prefix_of,
    put_text,
)
from tests.support.listing import ODD_KEYS, admission_of, fill, put_all, rules_for, take_turn
from tests.support.services import S3Bucket, s3_client
from tests.support.stores import FailingListing


@pytest.fixture
def api(bucket_api: RunningApi) -> RunningApi:
    return bucket_api


def read(api: RunningApi, batch: dict[str, Any]) -> dict[str, Any]:
    view: dict[str, Any] = api.client.get(batch["links"]["self"]).json()
    return view


def keys_of(documents: list[Document]) -> list[str]:
    return sorted(document.source["key"] for document in documents)


def test_every_object_under_a_prefix_becomes_one_document(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ODD_KEYS)
    put_all(scans, ["in/empty.pdf", "out/other.pdf"], body=lambda _: b"")
    batch = create_batch(api.client, **prefix_of(scans), options={"dpi": 300}).json()
    is_listing = batch["state"]

    fill(api.database, api.store, rules_for(scans, page_objects=3))

    view = read(api, batch)
    documents = documents_in(api.database)
    assert keys_of(documents) == sorted([*ODD_KEYS, "in/empty.pdf"])
    assert (is_listing, view["state"]) == ("listing", "running")
    assert view["listing"]["found"] == view["documents"]["total"] == len(ODD_KEYS) + 1
    assert view["listing"]["size_bytes"] == sum(len(key.encode()) for key in ODD_KEYS)
    assert {document.options["dpi"] for document in documents} == {300}
    assert {document.priority for document in documents} == {"bulk"}
    assert all(document.dispatch_after is not None for document in documents)


def test_an_object_is_pinned_as_it_was_found(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf"])
    create_batch(api.client, **prefix_of(scans))
    fill(api.database, api.store, rules_for(scans))

    (document,) = documents_in(api.database)

    found = s3_client(scans).head_object(Bucket=scans.name, Key="in/a.pdf")
    assert document.source["etag"] == found["ETag"].strip('"')
    assert (document.size_bytes, document.filename) == (8, "a.pdf")


def test_folders_are_no_documents(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/folder/"], body=lambda _: b"")
    put_all(scans, ["in/folder/a.pdf"])
    batch = create_batch(api.client, **prefix_of(scans)).json()

    fill(api.database, api.store, rules_for(scans))

    assert keys_of(documents_in(api.database)) == ["in/folder/a.pdf"]
    assert read(api, batch)["listing"]["found"] == 1


def test_an_empty_prefix_is_finished(api: RunningApi, scans: S3Bucket) -> None:
    batch = create_batch(api.client, **prefix_of(scans)).json()

    fill(api.database, api.store, rules_for(scans))

    view = read(api, batch)
    assert (view["state"], view["listing"]["is_done"], view["error"]) == ("finished", True, None)


def test_objects_by_name_come_with_what_goes_with_them(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf", "in/b.pdf"])
    first = objects_of(
        scans, "in/a.pdf", metadata={"z": 1, "a": [None]}, external_id="1", options={"dpi": 100}
    )
    batch = create_batch(api.client, **first, options={"text_order": "file", "dpi": 300}).json()
    added = api.client.post(f"{batch['links']['self']}/objects", json=objects_of(scans, "in/b.pdf"))

    fill(api.database, api.store, rules_for(scans))

    a, b = sorted(documents_in(api.database), key=lambda document: document.source["key"])
    assert added.status_code == 202
    assert (a.external_id, a.user_metadata) == ("1", {"z": 1, "a": [None]})
    assert (b.external_id, b.user_metadata) == (None, None)
    assert [(each.options["dpi"], each.options["text_order"]) for each in (a, b)] == [
        (100, "file"),
        (300, "file"),
    ]


def test_an_object_that_a_batch_has_is_not_entered_twice(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf", "in/b.pdf"])
    batch = create_batch(api.client, **objects_of(scans, "in/a.pdf", "in/a.pdf")).json()
    more = f"{batch['links']['self']}/objects"
    for _ in range(2):
        api.client.post(more, json=objects_of(scans, "in/a.pdf", "in/b.pdf"))

    fill(api.database, api.store, rules_for(scans))

    listing = read(api, batch)["listing"]
    assert keys_of(documents_in(api.database)) == ["in/a.pdf", "in/b.pdf"]
    assert (listing["found"], listing["duplicates"]) == (6, 4)


def test_an_object_of_other_bytes_is_another_document(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf"])
    batch = create_batch(api.client, **objects_of(scans, "in/a.pdf")).json()
    fill(api.database, api.store, rules_for(scans))
    put_text(scans, "in/a.pdf", "written over")

    api.client.post(f"{batch['links']['self']}/objects", json=objects_of(scans, "in/a.pdf"))
    fill(api.database, api.store, rules_for(scans))

    assert len(documents_in(api.database)) == 2


def test_an_object_that_is_not_there_becomes_a_document_that_will_say_so(
    api: RunningApi, scans: S3Bucket
) -> None:
    create_batch(api.client, **objects_of(scans, "in/none.pdf"))

    fill(api.database, api.store, rules_for(scans))

    (document,) = documents_in(api.database)
    assert (document.source["key"], document.source["etag"]) == ("in/none.pdf", "")


def test_an_object_that_comes_or_goes_is_one_document(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/goes.pdf"])
    both = objects_of(scans, "in/comes.pdf", "in/goes.pdf")
    batch = create_batch(api.client, **both).json()
    fill(api.database, api.store, rules_for(scans))
    put_all(scans, ["in/comes.pdf"])
    s3_client(scans).delete_object(Bucket=scans.name, Key="in/goes.pdf")

    api.client.post(f"{batch['links']['self']}/objects", json=both)
    fill(api.database, api.store, rules_for(scans))

    listing = read(api, batch)["listing"]
    assert keys_of(documents_in(api.database)) == ["in/comes.pdf", "in/goes.pdf"]
    assert (listing["found"], listing["duplicates"]) == (4, 2)


def test_an_object_is_one_document_with_its_version_and_without(
    api: RunningApi, scans: S3Bucket
) -> None:
    client = s3_client(scans)
    client.put_bucket_versioning(Bucket=scans.name, VersioningConfiguration={"Status": "Enabled"})
    older = client.put_object(Bucket=scans.name, Key="in/a.pdf", Body=b"older")["VersionId"]
    latest = client.put_object(Bucket=scans.name, Key="in/a.pdf", Body=b"latest")["VersionId"]
    versions: list[dict[str, str]] = [{}, {"version_id": latest}, {"version_id": older}, {}]
    objects = [{"bucket": scans.name, "key": "in/a.pdf", **version} for version in versions]

    create_batch(api.client, objects=objects)
    fill(api.database, api.store, rules_for(scans, page_objects=1))

    documents = documents_in(api.database)
    assert sorted(document.size_bytes for document in documents) == [5, 6]


def test_a_manifest_in_a_bucket_fills_a_batch(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ODD_KEYS)
    put_text(scans, "in/list.ndjson", manifest_text(scans, [*ODD_KEYS, ODD_KEYS[0]]))
    manifest = {"bucket": scans.name, "key": "in/list.ndjson"}
    batch = create_batch(api.client, manifest=manifest).json()

    fill(api.database, api.store, rules_for(scans, page_objects=4))

    view = read(api, batch)
    documents = documents_in(api.database)
    assert keys_of(documents) == sorted(ODD_KEYS)
    assert {each.source["key"]: each.external_id for each in documents} == {
        key: str(number) for number, key in enumerate(ODD_KEYS)
    }
    assert (view["listing"]["found"], view["listing"]["duplicates"]) == (len(ODD_KEYS) + 1, 1)


def test_of_a_manifest_with_a_mistake_in_its_last_line_nothing_is_entered(
    api: RunningApi, scans: S3Bucket
) -> None:
    put_all(scans, ["in/a.pdf"])
    put_text(scans, "in/m.csv", f"path\ns3://{scans.name}/in/a.pdf\ns3://elsewhere/in/b.pdf\n")
    batch = create_batch(api.client, manifest={"bucket": scans.name, "key": "in/m.csv"}).json()

    fill(api.database, api.store, rules_for(scans, page_objects=1))

    view = read(api, batch)
    assert documents_in(api.database) == []
    assert (view["state"], view["error"]["code"]) == ("failed", "invalid_manifest")
    assert "Line 3" in view["error"]["message"]


def test_a_manifest_is_read_in_turns(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf", "in/b.pdf", "in/c.pdf"])
    keys = ["in/a.pdf", "in/b.pdf", "in/c.pdf"]
    put_text(scans, "in/m.csv", "path\n" + "".join(f"s3://{scans.name}/{key}\n" for key in keys))
    create_batch(api.client, manifest={"bucket": scans.name, "key": "in/m.csv"})
    rules = rules_for(scans, page_objects=1, turn_s=0)

    turns = 0
    while take_turn(api.database, api.store, rules):
        turns += 1

    assert keys_of(documents_in(api.database)) == keys
    assert turns > 3


@pytest.mark.parametrize("late", ["in/m.csv", "in/none.csv"])
def test_a_manifest_that_is_replaced_or_missing_ends_the_batch(
    api: RunningApi, scans: S3Bucket, late: str
) -> None:
    put_all(scans, ["in/a.pdf", "in/b.pdf"])
    text = f"path\ns3://{scans.name}/in/a.pdf\ns3://{scans.name}/in/b.pdf\n"
    put_text(scans, "in/m.csv", text)
    batch = create_batch(api.client, manifest={"bucket": scans.name, "key": late}).json()
    rules = rules_for(scans, page_objects=1, turn_s=0)
    take_turn(api.database, api.store, rules)
    put_text(scans, "in/m.csv", text + "\n")

    fill(api.database, api.store, rules)

    expected = {"in/m.csv": "source_changed", "in/none.csv": "source_not_found"}
    assert read(api, batch)["error"]["code"] == expected[late]


def test_a_bucket_that_is_not_there_ends_the_batch_and_a_retry_goes_on(
    api: RunningApi, scans: S3Bucket
) -> None:
    batch = create_batch(api.client, **prefix_of(scans)).json()
    s3_client(scans).delete_bucket(Bucket=scans.name)
    fill(api.database, api.store, rules_for(scans))
    failed = read(api, batch)
    closed = api.client.post(
        f"{batch['links']['self']}/objects", json=objects_of(scans, "in/a.pdf")
    )
    s3_client(scans).create_bucket(Bucket=scans.name)
    put_all(scans, ["in/a.pdf"])

    retried = api.client.post(f"{batch['links']['self']}/retry")
    fill(api.database, api.store, rules_for(scans))

    assert (failed["state"], failed["error"]["code"]) == ("failed", "bucket_not_found")
    assert (closed.status_code, closed.json()["code"]) == (409, "batch_closed")
    assert (retried.status_code, retried.json()["state"]) == (202, "listing")
    assert (read(api, batch)["state"], read(api, batch)["error"]) == ("running", None)
    assert keys_of(documents_in(api.database)) == ["in/a.pdf"]


def test_a_bucket_that_may_not_be_listed_ends_the_batch(api: RunningApi, scans: S3Bucket) -> None:
    batch = create_batch(api.client, **prefix_of(scans)).json()

    fill(api.database, FailingListing(StorageError("AccessDenied")), rules_for(scans))

    view = read(api, batch)
    assert (view["state"], view["error"]["code"]) == ("failed", "listing_refused")


def test_a_store_that_is_away_is_waited_for(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf"])
    batch = create_batch(api.client, **prefix_of(scans)).json()
    for _ in range(5):  # more than a listing may fail
        take_turn(api.database, FailingListing(StorageUnavailableError("away")), rules_for(scans))
    waiting = read(api, batch)["state"]

    fill(api.database, api.store, rules_for(scans))

    assert (waiting, read(api, batch)["state"]) == ("listing", "running")


def test_a_listing_over_which_everybody_stumbles_is_given_up(
    api: RunningApi, scans: S3Bucket
) -> None:
    batch = create_batch(api.client, **prefix_of(scans)).json()
    broken = FailingListing(ZeroDivisionError())  # a mistake of ours

    fill(api.database, broken, rules_for(scans, max_failures=3))

    assert read(api, batch)["error"]["code"] == "internal"


def test_a_cancel_ends_a_listing(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, [f"in/{number}.pdf" for number in range(4)])
    batch = create_batch(api.client, **prefix_of(scans)).json()
    take_turn(api.database, api.store, rules_for(scans, page_objects=2, turn_s=0))

    cancelled = api.client.post(f"{batch['links']['self']}/cancel").json()
    fill(api.database, api.store, rules_for(scans))

    assert cancelled["state"] == "cancelled"
    assert cancelled["listing"]["is_done"]
    assert read(api, batch)["documents"]["total"] == 2


def test_other_tenants_neither_see_nor_fill_a_batch(
    api: RunningApi, stranger: httpx.Client, scans: S3Bucket
) -> None:
    put_all(scans, ["in/a.pdf"])
    batch = create_batch(api.client, **prefix_of(scans)).json()
    fill(api.database, api.store, rules_for(scans))
    address = batch["links"]["self"]

    answers = [
        stranger.get(address),
        stranger.get(f"{address}/documents"),
        stranger.get(f"{address}/report"),
        stranger.post(f"{address}/retry"),
        stranger.post(f"{address}/cancel"),
    ]
    adding = stranger.post(f"{address}/objects", json=objects_of(scans, "in/a.pdf"))

    assert {answer.status_code for answer in answers} == {404}
    assert adding.status_code == 404
    assert stranger.get("/v1/documents").json()["documents"] == []
    assert read(api, batch)["documents"]["total"] == 1


@pytest.mark.parametrize("more", [{}, {"dry_run": True}])
def test_a_place_of_another_tenant_is_neither_listed_nor_counted(
    api: RunningApi, stranger: httpx.Client, scans: S3Bucket, more: dict[str, Any]
) -> None:
    answer = create_batch(stranger, **prefix_of(scans), **more)

    assert (answer.status_code, answer.json()["code"]) == (403, "source_not_allowed")
    assert batches_in(api) == []


@pytest.mark.parametrize("more", [{}, {"dry_run": True}])
def test_what_the_operator_does_not_allow_is_refused(
    api: RunningApi, scans: S3Bucket, s3_bucket: S3Bucket, more: dict[str, Any]
) -> None:
    put_all(s3_bucket, ["in/a.pdf"])
    wanted: list[dict[str, Any]] = [
        prefix_of(scans, ""),
        prefix_of(scans, "in"),
        prefix_of(s3_bucket),
        objects_of(s3_bucket, "in/a.pdf"),
        objects_of(scans, "in/a.pdf", "out/b.pdf"),
        {"manifest": {"bucket": scans.name, "key": "out/m.csv"}},
    ]

    answers = [create_batch(api.client, **source, **more) for source in wanted]

    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {
        (403, "source_not_allowed")
    }
    assert batches_in(api) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"objects": []},
        {"objects": [{"bucket": "b", "key": "in/\x00"}]},
        {"objects": [{"bucket": "b", "key": "in/" + "ü" * 600}]},
        {"prefix": {"bucket": "b", "prefix": "ü" * 600}},
        {"objects": [{"bucket": "b", "key": "k", "color": 1}]},
        {"objects": [{"bucket": "b", "key": "k", "metadata": {"a": "x" * 17_000}}]},
        {"objects": [{"bucket": "b", "key": "k", "external_id": "a\nb"}]},
        {"objects": [{"bucket": "b", "key": str(number)} for number in range(1_001)]},
        {"prefix": {"bucket": "b"}, "manifest": {"bucket": "b", "key": "m.csv"}},
        {"prefix": {"bucket": ""}},
        {"dry_run": True},
        {"cursor": encode_place("in/a.pdf")},
    ],
)
def test_a_source_that_is_none_is_refused(api: RunningApi, fields: dict[str, Any]) -> None:
    answer = create_batch(api.client, **fields)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert batches_in(api) == []


def test_options_and_formats_that_are_none_are_refused(api: RunningApi, scans: S3Bucket) -> None:
    answers = [
        create_batch(api.client, **objects_of(scans, "in/a.pdf", options={"dpi": 1})),
        create_batch(api.client, manifest={"bucket": scans.name, "key": "in/manifest"}),
    ]

    assert [answer.status_code for answer in answers] == [422, 422]
    assert [answer.json()["errors"][0]["field"] for answer in answers] == [
        "options.dpi",
        "manifest.format",
    ]


def test_a_request_that_is_sent_again_makes_one_batch(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf"])
    once = {"Idempotency-Key": "order-17"}
    first = create_batch(api.client, **prefix_of(scans), headers=once)
    fill(api.database, api.store, rules_for(scans))

    again = create_batch(api.client, **prefix_of(scans), headers=once)
    other = create_batch(api.client, **prefix_of(scans, "in/1/"), headers=once)
    empty = create_batch(api.client, headers=once)
    fill(api.database, api.store, rules_for(scans))

    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert [each.json()["code"] for each in (other, empty)] == ["idempotency_mismatch"] * 2
    assert len(documents_in(api.database)) == 1


def test_a_listing_waits_for_the_quota_of_its_key(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, [f"in/{number}.pdf" for number in range(5)])
    with api.database.transaction() as session:
        key = api_keys.create(session, tenant="archive", name="quota", max_pages_per_day=3)
    with client_of(api.url, key) as client:
        batch = create_batch(client, **prefix_of(scans)).json()
        fill(api.database, api.store, rules_for(scans))
        capacity = client.get("/v1/capacity").json()["key"]

    view = read(api, batch)
    assert (view["state"], view["documents"]["total"]) == ("listing", 3)
    assert (capacity["pages_today"], capacity["documents_today"]) == (3, 3)


def test_a_listing_waits_while_the_system_is_full(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, [f"in/{number}.pdf" for number in range(5)])
    batch = create_batch(api.client, **prefix_of(scans)).json()
    admission = admission_of(api.database, max_pages=2)
    rules = rules_for(scans, page_objects=2)
    take_turn(api.database, api.store, rules, admission=admission)
    take_turn(api.database, api.store, rules, admission=admission)

    assert read(api, batch)["documents"]["total"] == 2


def test_the_report_names_the_objects(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a b.pdf"])
    batch = create_batch(api.client, **prefix_of(scans)).json()
    fill(api.database, api.store, rules_for(scans))
    api.client.post(
        "/v1/documents",
        files={"file": ("b.pdf", b"%PDF-1.7 b")},
        data={"batch_id": batch["id"]},
    )

    report = api.client.get(f"{batch['links']['report']}?format=ndjson").text

    assert [json.loads(line)["source"] for line in report.splitlines()] == [
        f"s3://{scans.name}/in/a b.pdf",
        None,
    ]


def test_a_deleted_document_does_not_come_again(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf"])
    batch = create_batch(api.client, **objects_of(scans, "in/a.pdf")).json()
    fill(api.database, api.store, rules_for(scans))
    (document,) = documents_in(api.database)
    api.client.delete(f"/v1/documents/{document.id}")

    api.client.post(f"{batch['links']['self']}/objects", json=objects_of(scans, "in/a.pdf"))
    fill(api.database, api.store, rules_for(scans))

    assert read(api, batch)["documents"]["total"] == 0
    assert read(api, batch)["listing"]["duplicates"] == 1


def test_objects_for_an_unknown_batch_are_refused(api: RunningApi, scans: S3Bucket) -> None:
    unknown = UUID(int=0)

    answer = api.client.post(f"/v1/batches/{unknown}/objects", json=objects_of(scans, "in/a.pdf"))

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
