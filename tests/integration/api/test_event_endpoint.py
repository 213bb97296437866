"""Storage events over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from api.place_settings import WatchedPlace
from tests.support.api_server import RunningApi, Serve, client_of, documents_in
from tests.support.services import (
    S3Bucket,
    put_with_a_key_of_its_own,
    s3_client,
)

TOKEN = "a token of 16 characters or more"  # noqa: S105 - of no server but this test's
ADDRESS = "/v1/events/s3"


@pytest.fixture
def scans(scans: S3Bucket) -> S3Bucket:
    """A bucket of the user's, with one object."""
    s3_client(scans).put_object(Bucket=scans.name, Key="in/a b.pdf", Body=b"%PDF-1.7")
    return scans


@pytest.fixture
def told(scans: S3Bucket) -> dict[str, Any]:
    place = WatchedPlace(bucket=scans.name, prefix="in/", tenant="archive")
    return {"s3_events_token": TOKEN, "s3_events_watched": (place,)}


@pytest.fixture
def api(serve: Serve, told: dict[str, Any]) -> Iterator[RunningApi]:
    with serve(settings=told) as running:
        yield running


@pytest.fixture
def sender(api: RunningApi) -> Iterator[httpx.Client]:
    """A store that knows the token."""
    with client_of(api.url, TOKEN) as client:
        yield client


def of_minio(bucket: S3Bucket, key: str, *, name: str = "s3:ObjectCreated:Put") -> dict[str, Any]:
    return {
        "EventName": name,
        "Key": f"{bucket.name}/{key}",
        "Records": [
            {
                "eventSource": "minio:s3",
                "eventName": name,
                "s3": {"bucket": {"name": bucket.name}, "object": {"key": key, "eTag": "1"}},
            }
        ],
    }


def test_an_event_is_answered_when_its_document_stands(
    api: RunningApi, sender: httpx.Client, scans: S3Bucket
) -> None:
    first = sender.post(ADDRESS, json=of_minio(scans, "in%2Fa+b.pdf"))
    rows = documents_in(api.database)
    again = sender.post(ADDRESS, json=of_minio(scans, "in%2Fa+b.pdf"))

    assert (first.status_code, first.json()) == (
        200,
        {"accepted": 1, "known": 0, "refused": 0, "ignored": 0},
    )
    assert [row.source["key"] for row in rows] == ["in/a b.pdf"]
    assert (again.status_code, again.json()) == (
        200,
        {"accepted": 0, "known": 1, "refused": 0, "ignored": 0},
    )


def test_an_object_that_the_store_refuses_keeps_no_other_back(
    api: RunningApi, sender: httpx.Client, scans: S3Bucket
) -> None:
    put_with_a_key_of_its_own(scans, "in/refused.pdf")
    refused, good = of_minio(scans, "in%2Frefused.pdf"), of_minio(scans, "in%2Fa+b.pdf")

    answer = sender.post(ADDRESS, json={"Records": [*refused["Records"], *good["Records"]]})

    assert (answer.status_code, answer.json()["refused"]) == (200, 1)
    assert [row.source["key"] for row in documents_in(api.database)] == ["in/a b.pdf"]


def test_what_makes_no_document_is_answered_all_the_same(
    api: RunningApi, sender: httpx.Client, scans: S3Bucket
) -> None:
    answer = sender.post(
        ADDRESS, json=of_minio(scans, "in%2Fa+b.pdf", name="s3:ObjectCreated:PutTagging")
    )

    assert (answer.status_code, answer.json()) == (
        200,
        {"accepted": 0, "known": 0, "refused": 0, "ignored": 0},
    )
    assert documents_in(api.database) == []


def test_a_sender_may_ask_whether_anybody_listens(sender: httpx.Client) -> None:
    answer = sender.head(ADDRESS)

    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("method", ["HEAD", "POST"])
@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Digest {TOKEN}"}],
)
def test_who_does_not_know_the_token_is_refused(
    api: RunningApi, method: str, headers: dict[str, str]
) -> None:
    answer = httpx.request(method, api.url + ADDRESS, headers=headers, trust_env=False)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_key_of_the_api_is_no_token(api: RunningApi) -> None:
    assert api.client.post(ADDRESS, json={}).status_code == 401


def test_a_sender_that_knows_only_an_address_may_have_the_token_in_it(api: RunningApi) -> None:
    answer = httpx.head(api.url + ADDRESS, auth=("pagefleet", TOKEN), trust_env=False)

    assert answer.status_code == 200


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_without_a_token_there_is_no_such_address(serve: Serve, method: str) -> None:
    with serve() as api:
        answer = api.client.request(method, ADDRESS)

    assert answer.status_code == 404


@pytest.mark.parametrize("body", [b"", b"{", json.dumps({"Records": [1]}).encode()])
def test_a_message_of_nobody_is_refused(sender: httpx.Client, body: bytes) -> None:
    answer = sender.post(ADDRESS, content=body)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_event")


def test_a_full_system_asks_the_sender_to_come_again(
    serve: Serve, told: dict[str, Any], scans: S3Bucket
) -> None:
    s3_client(scans).put_object(Bucket=scans.name, Key="in/b.pdf", Body=b"%PDF-1.7")
    told |= {"api_max_open_pages_bulk": 1, "api_capacity_cache_s": 0}

    with serve(settings=told) as api, client_of(api.url, TOKEN) as sender:
        sender.post(ADDRESS, json=of_minio(scans, "in%2Fa+b.pdf"))
        answer = sender.post(ADDRESS, json=of_minio(scans, "in%2Fb.pdf"))

    assert (answer.status_code, answer.json()["code"]) == (503, "system_full")
    assert "Retry-After" in answer.headers
