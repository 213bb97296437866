from collections.abc import Iterator

import pytest
import redis

from cli.stack.postgres import Postgres
from cli.stack.seaweedfs import SeaweedFS
from cli.stack.valkey import Valkey
from tests.support import services
from tests.support.fault_stage import FaultStage, write_document
from tests.support.fleet import lent_fleet


@pytest.fixture(scope="module")
def running_stage(
    request: pytest.FixtureRequest,
    postgres: Postgres,
    template_database: None,  # noqa: ARG001 - it has to be there
    valkey: Valkey,
    object_storage: SeaweedFS,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[FaultStage]:
    """One fleet for all faults of a module: to start one takes longer than to recover.

    A module may have settings of its own, ``STAGE_SETTINGS``, and further processes,
    ``STAGE_PROCESSES``.
    """
    folder = tmp_path_factory.mktemp("stage")
    with redis.Redis.from_url(valkey.url()) as client:
        client.flushall()
    with (
        services.fresh_database(postgres) as url,
        services.fresh_bucket(object_storage) as bucket,
        lent_fleet(database_url=url, redis_url=valkey.url(), bucket=bucket, home=folder) as fleet,
    ):
        yield FaultStage(
            fleet,
            bucket=bucket,
            broker_url=valkey.url(),
            document=write_document(folder),
            settings=getattr(request.module, "STAGE_SETTINGS", {}),
            more_processes=getattr(request.module, "STAGE_PROCESSES", {}),
        )


@pytest.fixture
def stage(running_stage: FaultStage) -> Iterator[FaultStage]:
    """The fleet of the module, alive and without any document."""
    running_stage.settle()
    yield running_stage
    running_stage.settle()
