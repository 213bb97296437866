from typing import Any, cast

import anyio
import pytest

from api.capacity import capacity_of
from api.services import Doors, Services, limit_asking_threads, open_doors
from api.settings import ApiSettings
from db.engine import Database
from storage.memory import InMemoryObjectStore
from storage.s3 import S3ObjectStore

POOL_SIZES = (1, 4, 64)


def settings_with(*, pool_size: int = 4, storage_threads: int = 16) -> ApiSettings:
    return ApiSettings.model_validate({
        "database_url": "postgresql://nobody@127.0.0.1:1/none",
        "redis_url": "redis://127.0.0.1:1",
        "s3_bucket": "unused",
        "s3_endpoint_url": "http://127.0.0.1:1",
        "s3_access_key_id": "unused",
        "s3_secret_access_key": "unused",
        "api_database_pool_size": pool_size,
        "api_storage_threads": storage_threads,
    })


@pytest.mark.parametrize("pool_size", POOL_SIZES)
def test_no_more_threads_ask_the_database_than_it_has_connections(pool_size: int) -> None:
    settings = settings_with(pool_size=pool_size)

    async def threads() -> float:
        limit_asking_threads(settings)
        return anyio.to_thread.current_default_thread_limiter().total_tokens

    with open_doors(settings) as doors:
        database = doors.transaction.__self__  # type: ignore[attr-defined]  # a bound method
        assert isinstance(database, Database)
        services = Services(settings, doors)
        probes = 1
        asking = anyio.run(threads) + services._accepting_threads.total_tokens + probes

        assert asking <= database.max_connections <= 3 * pool_size


@pytest.mark.parametrize("threads", [1, 16, 512])
def test_every_thread_that_talks_to_storage_keeps_its_connection(threads: int) -> None:
    settings = settings_with(storage_threads=threads)

    with open_doors(settings) as doors:
        assert isinstance(doors.store, S3ObjectStore)
        kept = doors.store._client.meta.config.max_pool_connections  # type: ignore[attr-defined]  # not in the stubs

    assert kept > threads + capacity_of(settings).accepting_threads


def test_uploads_that_are_completed_wait_for_one_another_and_for_no_other_call() -> None:
    settings = settings_with(pool_size=1)

    async def threads_left() -> tuple[float, float]:
        never = cast(Any, None)
        doors = Doors(never, InMemoryObjectStore(), never, never, never, never, {}, never)
        services = Services(settings, doors)
        return await services.in_accepting_thread(
            lambda: (
                services._accepting_threads.available_tokens,
                services._storage_threads.available_tokens,
            )
        )

    assert anyio.run(threads_left) == (0, settings.api_storage_threads)
