from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from api.app import create_app
from api.settings import ApiSettings
from db.engine import Database
from storage.s3 import S3ObjectStore
from tests.support.api_server import (
    ApiDoors,
    RecordedDispatch,
    client_of,
    make_key,
    open_store,
    served_in_thread,
)
from tests.support.services import S3Bucket

MAX_UPLOAD_BYTES = 3 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningApi:
    """The API on real servers, and what a test looks at it with."""

    url: str
    doors: ApiDoors
    database: Database
    store: S3ObjectStore
    dispatch: RecordedDispatch
    client: httpx.Client


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, pool_size=4)
    yield database
    database.dispose()


@pytest.fixture
def store(s3_bucket: S3Bucket) -> S3ObjectStore:
    return open_store(s3_bucket)


@pytest.fixture
def api(database: Database, store: S3ObjectStore) -> Iterator[RunningApi]:
    dispatch = RecordedDispatch()
    doors = ApiDoors(transaction=database.transaction, store=store, send_split=dispatch)
    settings = ApiSettings(
        database_url="postgresql://unused",  # type: ignore[arg-type] # pydantic converts it
        redis_url="redis://unused",  # type: ignore[arg-type] # pydantic converts it
        s3_bucket="unused",
        api_max_upload_bytes=MAX_UPLOAD_BYTES,
        api_key_cache_s=0,
    )
    with (
        served_in_thread(create_app(settings, doors=doors.open)) as url,
        client_of(url, make_key(database, "archive")) as client,
    ):
        yield RunningApi(
            url=url,
            doors=doors,
            database=database,
            store=store,
            dispatch=dispatch,
            client=client,
        )


@pytest.fixture
def stranger(api: RunningApi) -> Iterator[httpx.Client]:
    """A client of another tenant."""
    with client_of(api.url, make_key(api.database, "stranger")) as client:
        yield client
