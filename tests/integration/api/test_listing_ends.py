"""Listings that are held, lost and ended, whoever interferes."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text

from api.place_settings import AllowedSource
from db import listings
from db.ids import new_id
from db.intake_models import BatchListing
from storage.errors import StorageUnavailableError
from storage.memory import InMemoryObjectStore
from storage.object_store import StoredObject
from tests.support.api_server import (
    RunningApi,
    Serve,
    client_of,
    documents_in,
    make_key,
    wait_until,
)
from tests.support.batch_requests import create_batch, objects_of, prefix_of
from tests.support.listing import (
    PREFIX,
    TENANT,
    allowed_in,
    fill,
    listing_in_thread,
    put_all,
    rules_for,
    take_turn,
)
from tests.support.services import S3Bucket

LIST_S = 1.5  # longer than the leases below


@pytest.fixture
def api(bucket_api: RunningApi) -> RunningApi:
    return bucket_api


def create(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    answer = create_batch(client, **fields)
    assert answer.status_code == 201, answer.text
    batch: dict[str, Any] = answer.json()
    return batch


def read(api: RunningApi, batch: dict[str, Any]) -> dict[str, Any]:
    view: dict[str, Any] = api.client.get(batch["links"]["self"]).json()
    return view


def listings_in(api: RunningApi) -> list[BatchListing]:
    with api.database.transaction() as session:
        return session.query(BatchListing).order_by(BatchListing.id).all()


class SlowListing(InMemoryObjectStore):
    """A service that takes longer for one object than a lease lasts, or is away after that."""

    def __init__(self, *, is_away: bool) -> None:
        super().__init__()
        self.is_away = is_away
        self.asked = 0

    def other_bucket(self, name: str) -> "SlowListing":
        del name
        return self

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredObject]:
        del prefix
        self.asked += 1
        threading.Event().wait(LIST_S)
        if self.is_away:
            raise StorageUnavailableError("away")
        if after < "in/a.pdf":
            yield StoredObject("in/a.pdf", 8, "etag")


def test_a_store_that_is_slow_to_fail_ends_no_listing_of_two_that_wait_for_it(
    api: RunningApi, scans: S3Bucket
) -> None:
    batch = create(api.client, **prefix_of(scans))
    store = SlowListing(is_away=True)
    rules = rules_for(scans, lease_s=1, renew_every_s=0.2)

    with (
        listing_in_thread(api.database, store, rules),
        listing_in_thread(api.database, store, rules),
    ):
        wait_until(lambda: store.asked >= rules.max_failures + 2, what="more tries than it has")

    assert (read(api, batch)["state"], read(api, batch)["error"]) == ("listing", None)


def test_a_page_that_takes_longer_than_a_lease_is_entered_once(
    api: RunningApi, scans: S3Bucket
) -> None:
    batch = create(api.client, **prefix_of(scans))
    store = SlowListing(is_away=False)
    rules = rules_for(scans, lease_s=1, renew_every_s=0.2)

    with (
        listing_in_thread(api.database, store, rules),
        listing_in_thread(api.database, store, rules),
    ):
        wait_until(lambda: read(api, batch)["listing"]["is_done"], what="the end of the listing")

    assert len(documents_in(api.database)) == 1
    assert read(api, batch)["listing"]["duplicates"] == 0
    assert store.asked == 1


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_batch_that_an_earlier_release_cancels_has_no_open_listing(
    api: RunningApi,
    scans: S3Bucket,
    is_allowed: bool,  # noqa: FBT001 - which of two tests
) -> None:
    put_all(scans, ["in/a.pdf"])
    batch = create(api.client, **prefix_of(scans))
    with api.database.transaction() as session:
        # As a release does that knows no listings.
        session.execute(text("UPDATE batches SET state = 'cancelled'"))

    fill(api.database, api.store, rules_for(scans) if is_allowed else rules_for())

    view = read(api, batch)
    (listing,) = listings_in(api)
    assert (view["state"], view["error"], view["listing"]["is_done"]) == ("cancelled", None, True)
    assert (listing.error_code, listing.dispatch_after) == (None, None)
    assert documents_in(api.database) == []


def test_a_turn_ends_within_a_manifest_of_empty_lines(api: RunningApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/m.csv"], body=lambda _: b"path\n" + b"\n" * 12_000)
    create(api.client, manifest={"bucket": scans.name, "key": "in/m.csv"})

    take_turn(api.database, api.store, rules_for(scans, turn_s=0))

    (listing,) = listings_in(api)
    assert (listing.cursor, listing.is_checked, listing.failures) == ("5005:5001", False, 0)


def anybodys(scans: S3Bucket) -> AllowedSource:
    return AllowedSource(bucket=scans.name, prefix=PREFIX)


def test_a_tenant_with_many_listings_does_not_hold_up_another(
    serve: Serve, scans: S3Bucket
) -> None:
    put_all(scans, ["in/a.pdf", "in/b.pdf"])
    two = objects_of(scans, "in/a.pdf", "in/b.pdf")
    rules = rules_for(allowed=(anybodys(scans),), page_objects=1, turn_s=0)
    with serve(settings={"api_sources": (anybodys(scans),)}) as api:
        for _ in range(20):
            create(api.client, **two)
        with client_of(api.url, make_key(api.database, "stranger")) as stranger:
            batch = create(stranger, **two)

            for _ in range(6):
                take_turn(api.database, api.store, rules)

            view = stranger.get(batch["links"]["self"]).json()

    assert (view["listing"]["is_done"], view["documents"]["total"]) == (True, 2)


def test_a_tenant_with_short_listings_does_not_hold_up_another(
    serve: Serve, scans: S3Bucket
) -> None:
    put_all(scans, ["in/a.pdf", "in/b.pdf"])
    rules = rules_for(allowed=(anybodys(scans),), page_objects=1, turn_s=0)
    with (
        serve(settings={"api_sources": (anybodys(scans),)}) as api,
        client_of(api.url, make_key(api.database, "stranger")) as stranger,
    ):
        batch = create(stranger, **objects_of(scans, "in/a.pdf", "in/b.pdf"))

        for _ in range(6):
            # Each is at its end with its first turn, and is followed by one that had none.
            create(api.client, prefix={"bucket": scans.name, "prefix": "in/none/"})
            take_turn(api.database, api.store, rules)

        view = stranger.get(batch["links"]["self"]).json()

    assert (view["listing"]["is_done"], view["documents"]["total"]) == (True, 2)


def test_a_tenant_has_no_more_open_listings_than_it_may(serve: Serve, scans: S3Bucket) -> None:
    with serve(settings={"api_sources": (anybodys(scans),)}) as api:
        batch = create(api.client, **prefix_of(scans))
        with api.database.transaction() as session:
            for _ in range(listings.MOST_OPEN_PER_TENANT - 1):
                more = BatchListing(
                    id=new_id(),
                    batch_id=UUID(batch["id"]),
                    tenant=TENANT,
                    source={"kind": "prefix", "bucket": scans.name, "prefix": "in/"},
                )
                assert listings.add(session, more)
        once = {"Idempotency-Key": "one"}
        body = {"name": "one", **prefix_of(scans)}
        refused = [
            api.client.post("/v1/batches", json=body, headers=once),
            api.client.post(
                f"{batch['links']['self']}/objects", json=objects_of(scans, "in/a.pdf")
            ),
        ]
        with client_of(api.url, make_key(api.database, "stranger")) as stranger:
            create(stranger, **prefix_of(scans))
        fill(api.database, api.store, rules_for(allowed=(anybodys(scans),)))
        taken = api.client.post("/v1/batches", json=body, headers=once)

    assert {(each.status_code, each.json()["code"]) for each in refused} == {
        (429, "too_many_listings")
    }
    assert {each.headers["Retry-After"] for each in refused} == {"30"}
    assert taken.status_code == 201


def secret_of(bucket: S3Bucket) -> dict[str, Any]:
    return {
        "objects": [
            {"bucket": bucket.name, "key": "in/a.pdf", "metadata": {"z": "SECRET", "a": [1.0]}},
            {"bucket": bucket.name, "key": "in/SECRET.pdf"},
        ]
    }


def rows_with_secrets(api: RunningApi) -> int:
    query = (
        "SELECT count(*) FROM batch_listings AS each WHERE strpos(CAST(each AS text), 'SECRET') > 0"
    )
    with api.database.transaction() as session:
        return session.scalar(text(query)) or 0


def test_a_listing_that_is_finished_keeps_nothing_of_its_objects(
    api: RunningApi, scans: S3Bucket
) -> None:
    once = {"Idempotency-Key": "order-17"}
    body: dict[str, Any] = {"name": "boxes", **secret_of(scans)}
    first = api.client.post("/v1/batches", json=body, headers=once)
    before = rows_with_secrets(api)

    fill(api.database, api.store, rules_for(scans))

    again = api.client.post("/v1/batches", json=body, headers=once)
    body["objects"][1]["metadata"] = {"z": "other"}
    other = api.client.post("/v1/batches", json=body, headers=once)
    assert (before, rows_with_secrets(api)) == (1, 0)
    assert (again.json()["id"], again.headers["Idempotent-Replayed"]) == (
        first.json()["id"],
        "true",
    )
    assert other.json()["code"] == "idempotency_mismatch"


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_batch_that_is_cancelled_keeps_nothing_of_its_objects(
    serve: Serve,
    scans: S3Bucket,
    has_failed: bool,  # noqa: FBT001 - which of two tests
) -> None:
    with serve(settings={"api_sources": (allowed_in(scans),)}) as api:
        batch = create(api.client, **secret_of(scans))
        if has_failed:  # as documents may not come from there any more
            fill(api.database, api.store, rules_for())
        kept = rows_with_secrets(api)

        api.client.post(f"{batch['links']['self']}/cancel")

        assert (kept, rows_with_secrets(api)) == (1, 0)


def test_a_listing_that_failed_goes_on_with_all_that_it_names(
    api: RunningApi, scans: S3Bucket
) -> None:
    put_all(scans, ["in/a.pdf"])
    batch = create(api.client, **secret_of(scans))
    fill(api.database, api.store, rules_for())
    failed = read(api, batch)["error"]["code"]

    api.client.post(f"{batch['links']['self']}/retry")
    fill(api.database, api.store, rules_for(scans))

    documents = documents_in(api.database)
    assert failed == "source_not_allowed"
    assert {each.source["key"]: each.user_metadata for each in documents} == {
        "in/a.pdf": {"z": "SECRET", "a": [1.0]},
        "in/SECRET.pdf": None,
    }


class HeldListing(InMemoryObjectStore):
    """A service that lists nothing, and takes its time over it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def other_bucket(self, name: str) -> "HeldListing":
        del name
        return self

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredObject]:
        del prefix, after
        self.has_begun.set()
        self.may_end.wait(15)
        yield from ()


def test_a_tenant_has_one_dry_run_at_a_time(serve: Serve, scans: S3Bucket) -> None:
    store = HeldListing()
    body = {"name": "boxes", "dry_run": True, **prefix_of(scans)}
    with (
        serve(settings={"api_sources": (allowed_in(scans),)}, store=store) as api,
        ThreadPoolExecutor(1) as executor,
    ):
        first = executor.submit(api.client.post, "/v1/batches", json=body)
        assert store.has_begun.wait(10)

        refused = api.client.post("/v1/batches", json=body)
        store.may_end.set()
        counted = [first.result(), api.client.post("/v1/batches", json=body)]

    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_dry_runs")
    assert refused.headers["Retry-After"] == "5"
    assert [answer.status_code for answer in counted] == [200, 200]
