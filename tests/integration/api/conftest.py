from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import httpx
import pytest
import structlog

from api.services import Doors
from api.settings import ApiSettings
from db.engine import Database
from storage.s3 import S3ObjectStore
from tests.support.api_server import (
    RecordedDispatch,
    RecordedDrawings,
    RecordedExports,
    RunningApi,
    Serve,
    client_of,
    make_app,
    make_key,
    open_store,
    served_in_thread,
    unlimited,
)
from tests.support.listing import allowed_in
from tests.support.services import S3Bucket

MAX_UPLOAD_BYTES = 10 * 2**20  # above the part size of the S3 client


@pytest.fixture(autouse=True)
def _captured_logs() -> Iterator[None]:
    """Keeps the log lines of the API's thread out of the report."""
    with structlog.testing.capture_logs():
        yield


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, pool_size=4)
    yield database
    database.dispose()


@pytest.fixture
def store(s3_bucket: S3Bucket) -> Iterator[S3ObjectStore]:
    store = open_store(s3_bucket)
    yield store
    store.close()


@pytest.fixture
def serve(database: Database, store: S3ObjectStore) -> Serve:
    """Runs the API; a test may put something that fails in the place of any door."""

    @contextmanager
    def run(*, settings: Mapping[str, Any] | None = None, **replaced: Any) -> Iterator[RunningApi]:
        dispatch = RecordedDispatch()
        doors: dict[str, Any] = {
            "transaction": database.transaction,
            "store": store,
            "place_for_split": lambda: nullcontext(enter_result=True),
            "send_split": dispatch,
            "send_drawing": RecordedDrawings(),
            "send_export": RecordedExports(),
            "probes": {},
            "take_request": unlimited,
            **replaced,
        }

        @contextmanager
        def open_doors(settings: ApiSettings) -> Iterator[Doors]:
            assert settings.api_max_upload_bytes == MAX_UPLOAD_BYTES
            yield Doors(**doors)

        told: dict[str, Any] = {
            "database_url": "postgresql://unused",
            "redis_url": "redis://unused",
            "s3_bucket": "unused",
            "api_max_upload_bytes": MAX_UPLOAD_BYTES,
            "api_key_cache_s": 0,
            **(settings or {}),
        }
        with (
            served_in_thread(make_app(ApiSettings(**told), doors=open_doors)) as url,
            client_of(url, make_key(database, "archive")) as client,
        ):
            yield RunningApi(
                url=url, database=database, store=store, dispatch=dispatch, client=client
            )

    return run


@pytest.fixture
def api(serve: Serve) -> Iterator[RunningApi]:
    with serve() as running:
        yield running


@pytest.fixture
def bucket_api(serve: Serve, scans: S3Bucket) -> Iterator[RunningApi]:
    """An API that lets its tenant fill batches from a bucket of the user's."""
    with serve(settings={"api_sources": (allowed_in(scans),)}) as running:
        yield running


@pytest.fixture
def stranger(api: RunningApi) -> Iterator[httpx.Client]:
    """A client of another tenant."""
    with client_of(api.url, make_key(api.database, "stranger")) as client:
        yield client
