"""Which failures of a store are told to whoever counts them."""

from contextlib import suppress

import pytest

from cli.stack.ports import free_ports
from storage.errors import StorageError
from storage.s3 import S3ObjectStore
from tests.support.services import S3Bucket

MEDIA_TYPE = "image/tiff"


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def store(s3_bucket: S3Bucket, told: list[tuple[str, str]]) -> S3ObjectStore:
    return store_of(s3_bucket, told)


def store_of(
    bucket: S3Bucket,
    told: list[tuple[str, str]],
    *,
    endpoint_url: str | None = None,
    secret: str | None = None,
) -> S3ObjectStore:
    return S3ObjectStore(
        bucket=bucket.name,
        endpoint_url=endpoint_url or bucket.endpoint_url,
        region=bucket.region,
        access_key_id=bucket.access_key_id,
        secret_access_key=secret or bucket.secret_access_key,
        attempts=2,
        on_error=lambda whose, kind: told.append((whose, kind)),
    )


def test_what_succeeds_and_what_is_not_there_is_no_failure(
    store: S3ObjectStore, told: list[tuple[str, str]]
) -> None:
    store.put("a", b"1", media_type=MEDIA_TYPE)
    store.get("a")
    with suppress(StorageError):
        store.get("b")
    with suppress(StorageError):
        list(store.stream("a", etag="another"))
    store.check()

    assert told == []


def test_a_store_that_nobody_runs_is_told_of_once_for_each_call(
    s3_bucket: S3Bucket, told: list[tuple[str, str]]
) -> None:
    (port,) = free_ports(1)
    away = store_of(s3_bucket, told, endpoint_url=f"http://127.0.0.1:{port}")

    with suppress(StorageError):
        away.get("a")
    with suppress(StorageError), away.writer("a", media_type=MEDIA_TYPE) as writer:
        writer.write(b"1")

    assert told == [("own", "unavailable")] * 2


def test_a_refusal_is_told_of_and_whose_bucket_it_was(
    s3_bucket: S3Bucket, told: list[tuple[str, str]]
) -> None:
    stranger = store_of(s3_bucket, told, secret="a wrong one")  # noqa: S106 - it opens nothing

    with suppress(StorageError):
        stranger.get("a")
    with suppress(StorageError):
        stranger.other_bucket("scans").get("a")

    assert told == [("own", "refused"), ("other", "refused")]


def test_a_bucket_that_is_not_there_is_told_of(
    s3_bucket: S3Bucket, told: list[tuple[str, str]]
) -> None:
    store = store_of(s3_bucket, told)
    store.__dict__["_bucket"] = "no-such-bucket"

    with suppress(StorageError):
        store.check()

    assert told == [("own", "refused")]
