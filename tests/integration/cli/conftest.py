from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from api.services import Doors
from api.settings import ApiSettings
from cli.client import ApiClient
from db.engine import Database
from tests.support.api_server import (
    RecordedDispatch,
    RecordedDrawings,
    RecordedExports,
    ServedApi,
    make_app,
    make_key,
    open_store,
    served_in_thread,
    unlimited,
)
from tests.support.services import S3Bucket

TENANT = "archive"


@pytest.fixture
def api_settings() -> dict[str, Any]:
    """What a module's tests want the API to be told beside its servers."""
    return {}


@pytest.fixture
def served_api(
    database_url: str, s3_bucket: S3Bucket, api_settings: dict[str, Any]
) -> Iterator[ServedApi]:
    database = Database(database_url, pool_size=4)

    @contextmanager
    def open_doors(_: ApiSettings) -> Iterator[Doors]:
        yield Doors(
            transaction=database.transaction,
            store=open_store(s3_bucket),
            place_for_split=lambda: nullcontext(enter_result=True),
            send_split=RecordedDispatch(),
            send_drawing=RecordedDrawings(),
            send_export=RecordedExports(),
            probes={},
            take_request=unlimited,
        )

    settings = ApiSettings.model_validate({
        "database_url": "postgresql://unused",
        "redis_url": "redis://unused",
        "s3_bucket": "unused",
        **api_settings,
    })
    key = make_key(database, TENANT)
    with (
        capture_logs(),  # the API's, which shares the command's standard output here
        served_in_thread(make_app(settings, doors=open_doors)) as url,
        ApiClient(url, key) as client,
    ):
        yield ServedApi(url=url, key=key, client=client, database=database)
    database.dispose()


@pytest.fixture
def client_settings(monkeypatch: pytest.MonkeyPatch, served_api: ServedApi, tmp_path: Path) -> None:
    """Let commands of this process speak to the API that is served."""
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))
    monkeypatch.setenv("PAGEFLEET_CLIENT_API_URL", served_api.url)
    monkeypatch.setenv("PAGEFLEET_CLIENT_API_KEY", served_api.key)


@pytest.fixture
def ingest_work_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports go to where the command is called."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What is ingested."""
    folder = tmp_path / "archive"
    folder.mkdir()
    return folder
