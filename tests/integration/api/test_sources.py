"""Documents whose bytes lie in a bucket of the user's."""

import json
from typing import Any

import httpx
import pytest

from db import document_sources
from tests.support.api_server import (
    RunningApi,
    client_of,
    documents_in,
    keys_in,
    make_key,
)
from tests.support.services import S3Bucket, s3_client

KEY = "in/Größe + 5%.pdf"


@pytest.fixture
def scans(scans: S3Bucket) -> S3Bucket:
    """A bucket of the user's, with one object."""
    s3_client(scans).put_object(Bucket=scans.name, Key=KEY, Body=b"%PDF-1.7 x")
    return scans


@pytest.fixture
def api(bucket_api: RunningApi) -> RunningApi:
    return bucket_api


def submit(
    client: httpx.Client, bucket: S3Bucket, *, key: str = KEY, headers: Any = None, **fields: Any
) -> httpx.Response:
    return client.post(
        "/v1/documents",
        json={"source": {"bucket": bucket.name, "key": key}, **fields},
        headers=headers,
    )


def test_an_object_is_accepted_as_it_is_now(api: RunningApi, scans: S3Bucket) -> None:
    response = submit(api.client, scans, options={"dpi": 300})

    (row,) = documents_in(api.database)
    view = response.json()
    assert response.status_code == 202
    assert (view["filename"], view["size_bytes"], view["sha256"]) == ("Größe + 5%.pdf", 10, None)
    assert (row.source["bucket"], row.source["key"]) == (scans.name, KEY)
    assert row.source["etag"] == s3_client(scans).head_object(Bucket=scans.name, Key=KEY)[
        "ETag"
    ].strip('"')
    assert row.options["dpi"] == 300
    assert keys_in(api.store) == []
    assert api.dispatch.sent == [row.id]


def test_what_a_sender_says_of_an_object_is_kept(api: RunningApi, scans: S3Bucket) -> None:
    said = {"external_id": "box-1", "metadata": {"box": 1, "NUL": "\0"}}
    headers = {"Idempotency-Key": "box-1"}

    document = submit(api.client, scans, headers=headers, **said).json()
    other = submit(api.client, scans, headers=headers, external_id="box-1", metadata={"box": 2})

    kept = api.client.get(f"/v1/documents/{document['id']}").json()
    assert {name: kept[name] for name in said} == said
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


@pytest.mark.parametrize("number", ["NaN", "1e999", f'"{"9" * 17_000}"'])
def test_metadata_that_cannot_be_kept_is_refused(
    api: RunningApi, scans: S3Bucket, number: str
) -> None:
    source = json.dumps({"bucket": scans.name, "key": KEY})

    response = api.client.post(
        "/v1/documents",
        content=f'{{"source": {source}, "metadata": {{"a": {number}}}}}',
        headers={"Content-Type": "application/json"},
    )

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "metadata"
    assert documents_in(api.database) == []


@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        ("in/none.pdf", 422, "source_not_found"),
        ("out/none.pdf", 403, "source_not_allowed"),
        ("in/../out/none.pdf", 403, "source_not_allowed"),
        ("in/./none.pdf", 403, "source_not_allowed"),
        ("in/\x00", 422, "invalid_request"),
        ("", 422, "invalid_request"),
        ("in/" + "ü" * 600, 422, "invalid_request"),
    ],
)
def test_an_object_that_cannot_be_had_is_named(
    api: RunningApi, scans: S3Bucket, key: str, status: int, code: str
) -> None:
    response = submit(api.client, scans, key=key)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert documents_in(api.database) == []


def test_another_bucket_is_not_looked_at(api: RunningApi, s3_bucket: S3Bucket) -> None:
    response = submit(api.client, s3_bucket)

    assert (response.status_code, response.json()["code"]) == (403, "source_not_allowed")


def test_a_place_of_another_tenant_is_not_looked_at(api: RunningApi, scans: S3Bucket) -> None:
    with client_of(api.url, make_key(api.database, "stranger")) as stranger:
        response = submit(stranger, scans)

    assert (response.status_code, response.json()["code"]) == (403, "source_not_allowed")


def test_an_object_without_bytes_is_refused(api: RunningApi, scans: S3Bucket) -> None:
    s3_client(scans).put_object(Bucket=scans.name, Key="in/empty", Body=b"")

    response = submit(api.client, scans, key="in/empty")

    assert (response.status_code, response.json()["code"]) == (422, "empty")


def test_a_repeated_request_is_answered_even_when_the_object_is_gone(
    api: RunningApi, scans: S3Bucket
) -> None:
    once = {"Idempotency-Key": "order-17"}
    first = submit(api.client, scans, headers=once)
    s3_client(scans).delete_object(Bucket=scans.name, Key=KEY)

    again = submit(api.client, scans, headers=once)
    other = submit(api.client, scans, key="in/other.pdf", headers=once)

    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_body"),
        (b"[]", 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
        (b" " * 200_000, 413, "body_too_large"),
    ],
)
def test_a_body_that_names_nothing_is_refused(
    api: RunningApi, body: bytes, status: int, code: str
) -> None:
    response = api.client.post(
        "/v1/documents", content=body, headers={"Content-Type": "application/json"}
    )

    assert (response.status_code, response.json()["code"]) == (status, code)


def test_a_password_comes_with_the_name_of_an_object_too(api: RunningApi, scans: S3Bucket) -> None:
    fields = {"password": "kestrel"}

    assert submit(api.client, scans, **fields).status_code == 202

    (row,) = documents_in(api.database)
    with api.database.transaction() as session:
        assert document_sources.find_password(session, row.id) == "kestrel"
