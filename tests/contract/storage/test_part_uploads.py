"""Objects that others send in parts, asked of the store in memory and of a real S3 server."""

import threading
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from storage.errors import ObjectChangedError, ObjectNotFoundError
from storage.memory import InMemoryObjectStore
from storage.object_store import ObjectStore
from storage.part_uploads import MIN_PART_BYTES, StoredPart
from storage.s3 import S3ObjectStore
from tests.support.services import S3Bucket, s3_client

KEY = "documents/1/source"
FIRST = bytes(range(256)) * (MIN_PART_BYTES // 256)


def address_of(
    store: ObjectStore, parts_id: str, body: bytes, number: int = 1, *, expires_s: int = 60
) -> str:
    return store.part_uploads.presign(
        KEY, parts_id, number=number, size_bytes=len(body), expires_s=expires_s
    )


def send(store: ObjectStore, parts_id: str, number: int, body: bytes) -> None:
    if isinstance(store, InMemoryObjectStore):
        store.part_uploads.receive(KEY, parts_id, number, body)
    else:
        httpx.put(address_of(store, parts_id, body, number), content=body).raise_for_status()


def parts_in(store: ObjectStore, parts_id: str, *, after: int = 0) -> list[StoredPart]:
    return list(store.part_uploads.list(KEY, parts_id, after=after))


def uploads_in(bucket: S3Bucket) -> list[str]:
    found = s3_client(bucket).list_multipart_uploads(Bucket=bucket.name).get("Uploads", [])
    return [each["Key"] for each in found]


def test_parts_that_were_sent_become_an_object(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)
    send(store, parts_id, 2, b"the end")
    send(store, parts_id, 1, FIRST)
    parts = parts_in(store, parts_id)
    before = list(store.list(""))

    store.part_uploads.finish(KEY, parts_id, parts)

    assert [(part.number, part.size_bytes) for part in parts] == [(1, len(FIRST)), (2, 7)]
    assert before == []
    assert store.get(KEY) == FIRST + b"the end"


def test_a_single_part_may_be_of_any_size(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)
    send(store, parts_id, 1, b"x")

    store.part_uploads.finish(KEY, parts_id, parts_in(store, parts_id))

    assert store.get(KEY) == b"x"


def test_of_a_part_that_is_sent_again_the_latest_comes_last(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)
    send(store, parts_id, 1, b"first")
    (first,) = parts_in(store, parts_id)
    threading.Event().wait(1.1)  # a store may tell times by seconds
    send(store, parts_id, 1, b"other")
    *_, other = parts_in(store, parts_id)

    store.part_uploads.finish(KEY, parts_id, [other])

    assert first.etag != other.etag
    assert store.get(KEY) == b"other"


def test_a_part_with_another_etag_makes_no_object(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)
    send(store, parts_id, 1, b"x")

    with pytest.raises(ObjectChangedError):
        store.part_uploads.finish(KEY, parts_id, [StoredPart(1, 1, "0" * 32)])

    assert list(store.list("")) == []


def test_a_part_that_was_never_sent_makes_no_object(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)
    send(store, parts_id, 1, b"x")
    (first,) = parts_in(store, parts_id)

    with pytest.raises(ObjectChangedError):
        store.part_uploads.finish(KEY, parts_id, [first, StoredPart(2, 1, first.etag)])

    assert list(store.list("")) == []


def test_a_listing_of_parts_goes_on_after_a_number(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)
    for number in (1, 2, 4):
        send(store, parts_id, number, b"x")

    assert [part.number for part in parts_in(store, parts_id, after=1)] == [2, 4]
    assert parts_in(store, parts_id, after=4) == []


def test_parts_are_of_one_id(store: ObjectStore) -> None:
    one, other = store.part_uploads.begin(KEY), store.part_uploads.begin(KEY)
    send(store, one, 1, b"x")

    assert parts_in(store, other) == []
    assert one != other


@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_given_up_is_gone(store: ObjectStore, *, is_known: bool) -> None:
    parts_id = store.part_uploads.begin(KEY)
    send(store, parts_id, 1, b"x")

    store.part_uploads.abort(KEY, parts_id if is_known else None)

    with pytest.raises(ObjectNotFoundError):
        parts_in(store, parts_id)


def test_giving_up_what_is_gone_is_no_error(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)

    for _ in range(2):
        store.part_uploads.abort(KEY, parts_id)
    store.part_uploads.abort(KEY, None)


def test_giving_up_one_object_leaves_those_whose_names_begin_alike(store: ObjectStore) -> None:
    other_id = store.part_uploads.begin(f"{KEY}-2")

    store.part_uploads.abort(KEY, None)

    assert list(store.part_uploads.list(f"{KEY}-2", other_id)) == []


def test_an_object_is_put_together_once(store: ObjectStore) -> None:
    parts_id = store.part_uploads.begin(KEY)
    send(store, parts_id, 1, b"x")
    parts = parts_in(store, parts_id)
    store.part_uploads.finish(KEY, parts_id, parts)

    with pytest.raises(ObjectNotFoundError):
        parts_in(store, parts_id)
    with suppress(ObjectNotFoundError):  # some stores take it for done
        store.part_uploads.finish(KEY, parts_id, parts)

    assert store.get(KEY) == b"x"


@pytest.mark.parametrize("sent", [b"longer than that", b"short", b""])
def test_an_address_takes_no_other_length(s3_store: S3ObjectStore, sent: bytes) -> None:
    parts_id = s3_store.part_uploads.begin(KEY)

    answer = httpx.put(address_of(s3_store, parts_id, b"ten bytes."), content=sent)

    assert answer.status_code == 403
    assert parts_in(s3_store, parts_id) == []


def test_an_address_is_of_one_part(s3_store: S3ObjectStore) -> None:
    parts_id = s3_store.part_uploads.begin(KEY)
    address = address_of(s3_store, parts_id, b"x")

    answer = httpx.put(address.replace("partNumber=1", "partNumber=2"), content=b"x")

    assert "partNumber=1" in address
    assert answer.status_code == 403


def test_an_address_is_of_one_object(s3_store: S3ObjectStore) -> None:
    parts_id = s3_store.part_uploads.begin(KEY)
    address = address_of(s3_store, parts_id, b"x")

    answer = httpx.put(address.partition("?")[0], content=b"x")
    other = httpx.put(address.replace("/1/source", "/2/source"), content=b"x")

    assert (answer.status_code, other.status_code) == (403, 403)
    assert list(s3_store.list("")) == []


def test_an_address_expires(s3_store: S3ObjectStore) -> None:
    parts_id = s3_store.part_uploads.begin(KEY)
    address = address_of(s3_store, parts_id, b"x", expires_s=1)
    threading.Event().wait(2.5)

    assert httpx.put(address, content=b"x").status_code == 403


def test_an_address_opens_nothing_once_the_object_is_there(s3_store: S3ObjectStore) -> None:
    parts_id = s3_store.part_uploads.begin(KEY)
    address = address_of(s3_store, parts_id, b"first")
    httpx.put(address, content=b"first").raise_for_status()
    s3_store.part_uploads.finish(KEY, parts_id, parts_in(s3_store, parts_id))

    answer = httpx.put(address, content=b"other")

    assert answer.status_code == 404
    assert s3_store.get(KEY) == b"first"


def test_an_address_opens_nothing_once_the_object_is_given_up(
    s3_store: S3ObjectStore, s3_bucket: S3Bucket
) -> None:
    parts_id = s3_store.part_uploads.begin(KEY)
    address = address_of(s3_store, parts_id, b"first")
    s3_store.part_uploads.abort(KEY, parts_id)

    answer = httpx.put(address, content=b"first")

    assert answer.status_code == 404
    assert uploads_in(s3_bucket) == []


def test_more_parts_than_one_answer_holds_are_listed(
    s3_store: S3ObjectStore, s3_bucket: S3Bucket
) -> None:
    parts_id = s3_store.part_uploads.begin(KEY)
    client = s3_client(s3_bucket)
    for number in range(1, 1_003):
        client.upload_part(
            Bucket=s3_bucket.name, Key=KEY, UploadId=parts_id, PartNumber=number, Body=b"x"
        )

    assert [part.number for part in parts_in(s3_store, parts_id)] == list(range(1, 1_003))


def test_the_address_for_others_is_that_of_the_setting(s3_bucket: S3Bucket) -> None:
    store = S3ObjectStore(
        bucket=s3_bucket.name,
        endpoint_url=s3_bucket.endpoint_url,
        public_endpoint_url="https://files.example.org",
        access_key_id=s3_bucket.access_key_id,
        secret_access_key=s3_bucket.secret_access_key,
    )
    parts_id = store.part_uploads.begin(KEY)

    address = urlsplit(address_of(store, parts_id, b"x"))

    assert (address.scheme, address.netloc) == ("https", "files.example.org")
    assert address.path == f"/{s3_bucket.name}/{KEY}"
    assert parse_qs(address.query)["X-Amz-SignedHeaders"] == ["content-length;host"]


def test_parts_need_no_checksums_where_our_own_requests_have_some(s3_bucket: S3Bucket) -> None:
    store = S3ObjectStore(
        bucket=s3_bucket.name,
        endpoint_url=s3_bucket.endpoint_url,
        access_key_id=s3_bucket.access_key_id,
        secret_access_key=s3_bucket.secret_access_key,
        checksums="when_supported",
    )
    parts_id = store.part_uploads.begin(KEY)
    address = address_of(store, parts_id, b"x")

    httpx.put(address, content=b"x").raise_for_status()
    store.part_uploads.finish(KEY, parts_id, parts_in(store, parts_id))

    assert "checksum" not in address.lower()
    assert store.get(KEY) == b"x"
