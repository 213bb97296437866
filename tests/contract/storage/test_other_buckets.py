"""Objects of users: pinned when they are accepted, and told apart from ours when they are gone."""

from collections.abc import Iterator

import pytest

from cli.stack.seaweedfs import SeaweedFS
from storage import source_object
from storage.errors import ObjectChangedError, SourceNotFoundError, SourceRefusedError
from storage.s3 import S3ObjectStore
from storage.source_object import SourceAddress
from tests.support.services import S3Bucket, fresh_bucket, s3_client

KEY = "in/a b+c%20ü\n.pdf"


@pytest.fixture
def foreign(object_storage: SeaweedFS) -> Iterator[S3Bucket]:
    """A bucket that is not the store's own."""
    with fresh_bucket(object_storage) as bucket:
        yield bucket


def put(bucket: S3Bucket, body: bytes) -> None:
    s3_client(bucket).put_object(Bucket=bucket.name, Key=KEY, Body=body)


def test_an_object_of_another_bucket_is_read_as_it_was_accepted(
    s3_store: S3ObjectStore, foreign: S3Bucket
) -> None:
    put(foreign, b"pages")
    source = source_object.describe(s3_store, SourceAddress(foreign.name, KEY))

    content = b"".join(source_object.stream(s3_store, source))

    assert (content, source.size_bytes) == (b"pages", 5)


def test_an_object_that_was_replaced_is_not_read(
    s3_store: S3ObjectStore, foreign: S3Bucket
) -> None:
    put(foreign, b"pages")
    source = source_object.describe(s3_store, SourceAddress(foreign.name, KEY))
    put(foreign, b"other")

    with pytest.raises(ObjectChangedError):
        list(source_object.stream(s3_store, source))


def test_a_version_is_read_after_it_was_replaced(
    s3_store: S3ObjectStore, foreign: S3Bucket
) -> None:
    s3_client(foreign).put_bucket_versioning(
        Bucket=foreign.name, VersioningConfiguration={"Status": "Enabled"}
    )
    put(foreign, b"pages")
    source = source_object.describe(s3_store, SourceAddress(foreign.name, KEY))
    put(foreign, b"other")

    content = b"".join(source_object.stream(s3_store, source))

    assert content == b"pages"
    assert source_object.from_row(source.to_row()) == source


def test_an_object_that_is_not_there_is_no_mistake_of_ours(
    s3_store: S3ObjectStore, foreign: S3Bucket
) -> None:
    with pytest.raises(SourceNotFoundError):
        source_object.describe(s3_store, SourceAddress(foreign.name, KEY))


def test_a_store_that_refuses_says_so(s3_bucket: S3Bucket, foreign: S3Bucket) -> None:
    stranger = S3ObjectStore(
        bucket=s3_bucket.name,
        endpoint_url=s3_bucket.endpoint_url,
        access_key_id=s3_bucket.access_key_id,
        secret_access_key="a wrong one",  # noqa: S106 - it opens nothing
    )

    with pytest.raises(SourceRefusedError):
        source_object.describe(stranger, SourceAddress(foreign.name, KEY))


def test_a_bucket_of_the_user_is_listed_from_any_of_its_keys(
    s3_store: S3ObjectStore, foreign: S3Bucket
) -> None:
    put(foreign, b"pages")

    found = list(source_object.list_prefix(s3_store, foreign.name, KEY[:3]))

    assert [each.key for each in found] == [KEY]
    assert list(source_object.list_prefix(s3_store, foreign.name, KEY[:3], after=KEY)) == []


def test_a_bucket_that_is_not_there_is_not_listed(
    s3_store: S3ObjectStore, foreign: S3Bucket
) -> None:
    with pytest.raises(SourceNotFoundError):
        list(source_object.list_prefix(s3_store, f"{foreign.name}-none", ""))


def test_a_bucket_is_not_listed_for_whom_the_store_refuses(
    s3_bucket: S3Bucket, foreign: S3Bucket
) -> None:
    stranger = S3ObjectStore(
        bucket=s3_bucket.name,
        endpoint_url=s3_bucket.endpoint_url,
        access_key_id=s3_bucket.access_key_id,
        secret_access_key="a wrong one",  # noqa: S106 - it opens nothing
    )

    with pytest.raises(SourceRefusedError):
        list(source_object.list_prefix(stranger, foreign.name, ""))
