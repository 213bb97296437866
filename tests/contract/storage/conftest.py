import pytest

from storage.memory import InMemoryObjectStore
from storage.object_store import ObjectStore
from storage.s3 import S3ObjectStore
from tests.support.services import S3Bucket


@pytest.fixture
def s3_store(s3_bucket: S3Bucket) -> S3ObjectStore:
    return S3ObjectStore(
        bucket=s3_bucket.name,
        endpoint_url=s3_bucket.endpoint_url,
        region=s3_bucket.region,
        access_key_id=s3_bucket.access_key_id,
        secret_access_key=s3_bucket.secret_access_key,
    )


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each store in turn, empty."""
    if request.param == "memory":
        return InMemoryObjectStore()
    s3_store: ObjectStore = request.getfixturevalue("s3_store")
    return s3_store
