"""What only a store behind a network can do: hand out addresses, refuse, and be away."""

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
import pytest

from cli.stack.ports import free_ports
from storage.errors import (
    ObjectCorruptError,
    ObjectNotFoundError,
    StorageError,
    StorageUnavailableError,
)
from storage.object_store import PART_BYTES
from storage.s3 import Checksums, S3ObjectStore
from tests.support.broken_writes import BrokenOffError, break_off
from tests.support.services import S3Bucket, s3_client

MEDIA_TYPE = "image/tiff"


@contextmanager
def answering(
    status: int,
    body: bytes,
    *,
    announced_bytes: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Run a server that answers every request the same way; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(announced_bytes or len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def store_at(
    endpoint_url: str,
    *,
    bucket: str = "bucket",
    key_secret: str = "a wrong one",  # noqa: S107 - it opens nothing
    checksums: Checksums = "when_required",
) -> S3ObjectStore:
    return S3ObjectStore(
        bucket=bucket,
        endpoint_url=endpoint_url,
        access_key_id="pagefleet",
        secret_access_key=key_secret,
        checksums=checksums,
        attempts=2,
    )


def error_body(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()


@pytest.mark.parametrize("key", ["documents/1", "documents/a b+c%20/文書"])
def test_anybody_can_get_an_object_at_a_presigned_address(
    s3_store: S3ObjectStore, key: str
) -> None:
    s3_store.put(key, b"body", media_type=MEDIA_TYPE)

    answer = httpx.get(s3_store.presign_get(key, expires_s=60))

    assert answer.content == b"body"
    assert answer.headers["content-type"] == MEDIA_TYPE


@pytest.mark.parametrize("key", ["documents/1", "documents/a b+c%20/文書"])
def test_anybody_can_put_an_object_at_a_presigned_address(
    s3_store: S3ObjectStore, key: str
) -> None:
    address = s3_store.presign_put(key, media_type=MEDIA_TYPE, expires_s=60)

    answer = httpx.put(address, content=b"sent", headers={"Content-Type": MEDIA_TYPE})

    assert answer.status_code == 200
    assert s3_store.get(key) == b"sent"


def test_a_presigned_address_for_getting_does_not_allow_putting(s3_store: S3ObjectStore) -> None:
    s3_store.put("documents/1", b"body", media_type=MEDIA_TYPE)

    answer = httpx.put(s3_store.presign_get("documents/1", expires_s=60), content=b"other")

    assert answer.status_code == 403
    assert s3_store.get("documents/1") == b"body"


def test_nobody_gets_an_object_without_a_signature(
    s3_store: S3ObjectStore, s3_bucket: S3Bucket
) -> None:
    s3_store.put("documents/1", b"body", media_type=MEDIA_TYPE)

    answer = httpx.get(f"{s3_bucket.endpoint_url}/{s3_bucket.name}/documents/1")

    assert answer.status_code == 403


@pytest.mark.parametrize("size", [PART_BYTES + 1, 3 * PART_BYTES])
def test_a_broken_off_writer_leaves_no_unfinished_upload(
    s3_store: S3ObjectStore, s3_bucket: S3Bucket, size: int
) -> None:
    with pytest.raises(BrokenOffError):
        break_off(s3_store, "documents/1", size)

    client = s3_client(s3_bucket)
    unfinished = client.list_multipart_uploads(Bucket=s3_bucket.name).get("Uploads", [])
    client.close()
    assert unfinished == []


def test_a_bucket_is_made_once(s3_bucket: S3Bucket) -> None:
    store = store_at(
        s3_bucket.endpoint_url,
        bucket=f"{s3_bucket.name}-made",
        key_secret=s3_bucket.secret_access_key,
    )

    store.ensure_bucket()
    store.put("documents/1", b"body", media_type=MEDIA_TYPE)
    store.ensure_bucket()

    assert store.get("documents/1") == b"body"


def test_a_wrong_secret_is_refused_and_not_taken_for_an_outage(s3_bucket: S3Bucket) -> None:
    store = store_at(s3_bucket.endpoint_url, bucket=s3_bucket.name)

    with pytest.raises(StorageError) as refused:
        store.get("documents/1")

    assert type(refused.value) is StorageError


def test_the_check_finds_a_wrong_secret(s3_bucket: S3Bucket) -> None:
    store = store_at(s3_bucket.endpoint_url, bucket=s3_bucket.name)

    with pytest.raises(StorageError) as refused:
        store.check()

    assert type(refused.value) is StorageError


def test_the_check_finds_a_missing_bucket(s3_bucket: S3Bucket) -> None:
    store = store_at(
        s3_bucket.endpoint_url,
        bucket=f"{s3_bucket.name}-none",
        key_secret=s3_bucket.secret_access_key,
    )

    with pytest.raises(StorageError) as refused:
        store.check()

    assert not isinstance(refused.value, ObjectNotFoundError | StorageUnavailableError)


def test_a_store_that_nobody_runs_is_unavailable() -> None:
    store = store_at(f"http://127.0.0.1:{free_ports(1)[0]}")

    with pytest.raises(StorageUnavailableError):
        store.put("documents/1", b"body", media_type=MEDIA_TYPE)


@pytest.mark.parametrize(
    ("status", "code"), [(503, "SlowDown"), (500, "InternalError"), (502, ""), (429, "Throttling")]
)
def test_a_store_that_throttles_or_fails_is_unavailable(status: int, code: str) -> None:
    with (
        answering(status, error_body(code)) as endpoint_url,
        pytest.raises(StorageUnavailableError),
    ):
        store_at(endpoint_url).get("documents/1")


def test_an_answer_that_breaks_off_is_an_outage() -> None:
    with answering(200, b"half", announced_bytes=8) as endpoint_url:
        store = store_at(endpoint_url)

        with pytest.raises(StorageUnavailableError):
            store.get("documents/1")


def test_a_stream_that_breaks_off_is_an_outage() -> None:
    with answering(200, b"half", announced_bytes=8) as endpoint_url:
        parts = store_at(endpoint_url).stream("documents/1")

        with pytest.raises(StorageUnavailableError):
            list(parts)


def test_bytes_with_another_checksum_are_corrupt() -> None:
    checksum = {"x-amz-checksum-crc32": "AAAAAA=="}
    with answering(200, b"body", headers=checksum) as endpoint_url:
        store = store_at(endpoint_url, checksums="when_supported")

        with pytest.raises(ObjectCorruptError):
            store.get("documents/1")


def delete_answer(*codes: str) -> bytes:
    errors = "".join(
        f"<Error><Key>{at}</Key><Code>{code}</Code></Error>" for at, code in enumerate(codes)
    )
    return f"<?xml version='1.0'?><DeleteResult>{errors}</DeleteResult>".encode()


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        (["SlowDown", "NoSuchKey"], StorageUnavailableError),
        (["SlowDown", "InternalError"], StorageUnavailableError),
        (["SlowDown", "AccessDenied"], StorageError),
    ],
)
def test_a_delete_that_leaves_objects_behind_says_whether_trying_again_helps(
    codes: list[str], error: type[StorageError]
) -> None:
    with answering(200, delete_answer(*codes)) as url, pytest.raises(StorageError) as refusal:
        store_at(url).delete(str(at) for at in range(len(codes)))

    assert type(refusal.value) is error


def test_a_key_that_is_not_there_counts_as_deleted() -> None:
    with answering(200, delete_answer("NoSuchKey")) as url:
        store_at(url).delete(["0"])
