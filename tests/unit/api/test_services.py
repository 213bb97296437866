import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext

import anyio
import anyio.to_thread
import pytest

from api.errors import ApiError
from api.services import Doors, Services
from api.settings import ApiSettings
from db.engine import Session
from db.errors import DatabaseUnavailableError
from storage.memory import InMemoryObjectStore
from tests.support.api_server import (
    RecordedDispatch,
    RecordedDrawings,
    RecordedExports,
    unlimited,
)


def no_database() -> AbstractContextManager[Session]:
    raise DatabaseUnavailableError("none")


def services_for(max_uploads: int) -> Services:
    settings = ApiSettings(
        database_url="postgresql://nowhere/none",  # type: ignore[arg-type] # pydantic converts it
        redis_url="redis://nowhere",  # type: ignore[arg-type] # pydantic converts it
        s3_bucket="none",
        api_max_uploads=max_uploads,
    )
    return Services(
        settings,
        Doors(
            no_database,
            InMemoryObjectStore(),
            RecordedDispatch(),
            nullcontext,
            RecordedDrawings(),
            RecordedExports(),
            {},
            unlimited,
        ),
    )


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """Holds the uploads that run."""
    with ExitStack() as stack:
        yield stack


def test_one_tenant_gets_half_of_the_places_for_uploads(running: ExitStack) -> None:
    services = services_for(4)
    for _ in range(2):
        running.enter_context(services.upload_slot("greedy"))

    with pytest.raises(ApiError, match="too_many_uploads"):
        running.enter_context(services.upload_slot("greedy"))

    running.enter_context(services.upload_slot("other"))


def test_all_tenants_together_get_all_places(running: ExitStack) -> None:
    services = services_for(2)
    for tenant in ("a", "b"):
        running.enter_context(services.upload_slot(tenant))

    with pytest.raises(ApiError, match="too_many_uploads"):
        running.enter_context(services.upload_slot("c"))


def test_a_place_is_free_again_when_its_upload_is_over() -> None:
    services = services_for(1)
    for _ in range(2):
        with services.upload_slot("a"):
            pass


def test_a_tenant_counts_once_at_a_time_and_leaves_room_to_others() -> None:
    services = services_for(1)
    has_begun, may_end = threading.Event(), threading.Event()

    def count_for_long() -> None:
        has_begun.set()
        may_end.wait(10)

    async def count_first() -> None:
        await services.in_counting_thread("a", count_for_long)

    async def count_beside() -> tuple[str, str]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count_first)
            await anyio.to_thread.run_sync(has_begun.wait)
            with pytest.raises(ApiError, match="too_many_dry_runs"):
                await services.in_counting_thread("a", lambda: "refused")
            other = await services.in_counting_thread("b", lambda: "another tenant's")
            may_end.set()
        return other, await services.in_counting_thread("a", lambda: "the next one")

    assert anyio.run(count_beside) == ("another tenant's", "the next one")
