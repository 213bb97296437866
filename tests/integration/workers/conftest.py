from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from db.engine import Database
from tests.support.pipeline import Pipeline
from tests.support.renderers import small_renderer
from tests.support.rows import NOT_DUE_S
from tests.support.stores import RefusingObjectStore
from workers import broker as broker_door
from workers import dispatch
from workers.page_renderer import PageRenderer, RenderLimits
from workers.source_file import SourceFile
from workers.work_rules import WorkRules


@pytest.fixture
def renderer() -> Iterator[PageRenderer]:
    """One with little room, and without any document."""
    with small_renderer() as made:
        yield made


@pytest.fixture
def store() -> RefusingObjectStore:
    return RefusingObjectStore()


@pytest.fixture
def broker(redis_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    """Let messages go to the real broker.

    Through an application of the test's own: the process's reads its settings once, and which
    test is the first to make it do so depends on their order.
    """
    monkeypatch.setenv("PAGEFLEET_REDIS_URL", redis_url)
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", database_url)
    monkeypatch.setenv("PAGEFLEET_S3_BUCKET", "pagefleet")
    with Celery("pagefleet", set_as_current=False) as app:
        app.config_from_object("workers.celeryconfig:options")
        for door in (broker_door, dispatch):
            monkeypatch.setattr(door, "app", app)
        yield app


@pytest.fixture(scope="module")
def lasting_renderer() -> Iterator[PageRenderer]:
    """One whose child lives on from test to test, as a worker's does from document to document."""
    with PageRenderer(RenderLimits()) as made:
        yield made


@pytest.fixture
def pipeline(
    database_url: str,
    broker: Celery,  # noqa: ARG001 - it has to be there
    store: RefusingObjectStore,
    lasting_renderer: PageRenderer,
    tmp_path: Path,
) -> Iterator[Pipeline]:
    database = Database(database_url)
    source_file = SourceFile(store, folder=tmp_path)
    rules = WorkRules(
        worker="test:1",
        lease_s=60,
        max_attempts=3,
        retry_delay_s=5,
        dispatch_grace_s=NOT_DUE_S,
        queue_limit=256,
    )
    yield Pipeline(database, store, source_file, lasting_renderer, rules)
    lasting_renderer.close()
    source_file.close()
    database.dispose()
