"""Direct uploads that come to nothing: what was sent of them is removed, and nothing else."""

import socket
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest
from sqlalchemy import select, update

from db.engine import Database
from db.intake_models import DirectUpload
from storage import keys
from storage.s3 import S3ObjectStore
from tests.support.api_server import RunningApi, documents_in, keys_in
from tests.support.direct_uploads import (
    announce,
    announced,
    clear,
    complete,
    let_pass,
    parts_in,
    rows_in,
    send,
    sent,
)
from tests.support.rows import add_document
from tests.support.services import S3Bucket, s3_client

PDF = b"%PDF-1.7\n" + bytes(2_000)
DAY_S = 86_400.0
LATE_S = 3_600.0


def is_empty(api: RunningApi, bucket: S3Bucket) -> bool:
    return keys_in(api.store) == [] and parts_in(bucket) == []


def put_together(api: RunningApi, upload_id: str) -> None:
    """Do what a check does first, as one that then dies."""
    key, parts = keys.source_key(UUID(upload_id)), api.store.part_uploads
    with api.database.transaction() as session:
        parts_id = session.scalars(select(DirectUpload.parts_id)).one() or ""
    parts.finish(key, parts_id, list(parts.list(key, parts_id)))


def test_an_upload_that_nobody_completes_expires(api: RunningApi, s3_bucket: S3Bucket) -> None:
    upload = sent(api.client, PDF)
    let_pass(api.database, DAY_S - 60)
    clear(api.database, api.store)
    before = (parts_in(s3_bucket), api.client.get(upload["links"]["self"]).status_code)

    let_pass(api.database, 61)
    answers = [
        api.client.get(upload["links"]["self"]),
        api.client.get(upload["links"]["parts"]),
        complete(api.client, upload),
        api.client.delete(upload["links"]["self"]),
    ]
    clear(api.database, api.store)
    late = httpx.put(upload["parts"][0]["url"], content=PDF)

    assert before == ([keys.source_key(UUID(upload["id"]))], 200)
    assert {answer.status_code for answer in answers} == {404}
    assert late.status_code == 404
    assert is_empty(api, s3_bucket)
    assert documents_in(api.database) == []


def test_a_part_that_arrives_late_is_removed_with_the_row(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    upload = sent(api.client, PDF)
    key = keys.source_key(UUID(upload["id"]))
    let_pass(api.database, DAY_S + 1)
    clear(api.database, api.store)
    rows_between = rows_in(api.database)
    # As of a store in which a part that was on its way outlives the end of its upload.
    api.store.put(key, PDF, media_type="application/pdf")

    let_pass(api.database, LATE_S)
    clear(api.database, api.store)

    assert rows_between == [UUID(upload["id"])]
    assert rows_in(api.database) == []
    assert is_empty(api, s3_bucket)


def test_a_client_that_goes_away_in_a_part_leaves_nothing_behind(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    upload = announced(api.client, PDF)
    address = urlsplit(upload["parts"][0]["url"])
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        head = (
            f"PUT {address.path}?{address.query} HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Content-Length: {len(PDF)}\r\n\r\n"
        )
        connection.sendall(head.encode() + PDF[:1_000])
    incomplete = complete(api.client, upload)

    let_pass(api.database, DAY_S + LATE_S + 1)
    clear(api.database, api.store)

    assert (incomplete.status_code, incomplete.json()["missing_parts"]) == (409, [1])
    assert rows_in(api.database) == []
    assert is_empty(api, s3_bucket)


def test_an_aborted_upload_is_gone(api: RunningApi, s3_bucket: S3Bucket) -> None:
    upload = sent(api.client, PDF, key="once")

    aborted = api.client.delete(upload["links"]["self"])
    clear(api.database, api.store)
    answers = [
        api.client.get(upload["links"]["self"]),
        complete(api.client, upload),
        api.client.delete(upload["links"]["self"]),
    ]
    late = httpx.put(upload["parts"][0]["url"], content=PDF)
    another = announce(api.client, PDF, key="once")

    assert aborted.status_code == 204
    assert {answer.status_code for answer in answers} == {404}
    assert late.status_code == 404
    assert keys_in(api.store) == []
    assert another.status_code == 201
    assert another.json()["id"] != upload["id"]
    assert parts_in(s3_bucket) == [keys.source_key(UUID(another.json()["id"]))]


def test_an_upload_that_has_failed_can_be_aborted(api: RunningApi) -> None:
    upload = sent(api.client, b"a text of somebody")
    complete(api.client, upload)

    assert api.client.delete(upload["links"]["self"]).status_code == 204
    assert api.client.get(upload["links"]["self"]).status_code == 404


def test_what_was_put_together_and_refused_is_removed_in_the_end(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    batch_id = api.client.post("/v1/batches", json={"name": "b"}).json()["id"]
    upload = sent(api.client, PDF, batch_id=batch_id)
    put_together(api, upload["id"])
    api.client.post(f"/v1/batches/{batch_id}/cancel")
    refused = complete(api.client, upload)
    left = keys_in(api.store)

    let_pass(api.database, DAY_S + LATE_S + 1)
    clear(api.database, api.store)

    assert (refused.status_code, refused.json()["code"]) == (409, "batch_closed")
    assert left == [keys.source_key(UUID(upload["id"]))]
    assert is_empty(api, s3_bucket)


def test_an_api_that_died_before_it_noted_the_parts_leaves_none(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    upload = sent(api.client, PDF)
    with api.database.transaction() as session:
        session.execute(update(DirectUpload).values(parts_id=None))
    # Of another object; that nobody removes it shows that none is but those of the upload.
    s3_client(s3_bucket).create_multipart_upload(Bucket=s3_bucket.name, Key="other")

    let_pass(api.database, DAY_S + LATE_S + 1)
    clear(api.database, api.store)

    assert upload["state"] == "open"
    assert parts_in(s3_bucket) == ["other"]


def test_an_announcement_that_broke_off_is_taken_up_under_its_key(api: RunningApi) -> None:
    first = announced(api.client, PDF, key="once")
    with api.database.transaction() as session:
        session.execute(update(DirectUpload).values(parts_id=None))

    again = announce(api.client, PDF, key="once").json()
    send(again, PDF)

    assert again["id"] == first["id"]
    assert complete(api.client, again).status_code == 202


@pytest.mark.parametrize("days", [1, 30])
def test_the_document_of_an_upload_stays(
    api: RunningApi, database: Database, store: S3ObjectStore, days: int
) -> None:
    upload = sent(api.client, PDF)
    complete(api.client, upload)
    with database.transaction() as session:
        add_document(session)  # of which nothing is in storage

    let_pass(database, days * DAY_S)
    clear(database, store)

    assert keys_in(store) == [keys.source_key(UUID(upload["id"]))]
    assert api.client.get(f"/v1/documents/{upload['id']}").status_code == 200


def test_a_deleted_document_is_no_upload_either(api: RunningApi) -> None:
    upload = sent(api.client, PDF)
    complete(api.client, upload)

    api.client.delete(f"/v1/documents/{upload['id']}")

    assert api.client.get(upload["links"]["self"]).status_code == 404
    assert complete(api.client, upload).status_code == 404
