from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.stack.leash import Leash
from cli.stack.postgres import Postgres
from cli.stack.seaweedfs import SeaweedFS
from cli.stack.valkey import Valkey
from db.migrate import migrate
from tests.support import services
from tests.support.fault_bench import FaultBench, fault_bench


@pytest.fixture(scope="session")
def fault_postgres(services_folder: Path, leash: Leash) -> Iterator[Postgres]:
    """A server for these tests alone, which they may kill."""
    server = Postgres(services_folder / "fault-postgres", leash=leash, durable=False)
    with services.running(server):
        yield server
    server.remove_data()


@pytest.fixture(scope="session")
def fault_valkey(services_folder: Path, leash: Leash) -> Iterator[Valkey]:
    """A server for these tests alone, which they may kill."""
    with services.running(Valkey(services_folder / "fault-valkey", leash=leash)) as server:
        yield server


@pytest.fixture(scope="session")
def bench(
    fault_postgres: Postgres,
    fault_valkey: Valkey,
    object_storage: SeaweedFS,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[FaultBench]:
    """One fleet for all these tests, as its start takes longer than most of them.

    Every test leaves it whole: what it broke runs again, and no document is open.
    """
    migrate(fault_postgres.url())
    with (
        services.fresh_bucket(object_storage) as bucket,
        fault_bench(
            database_url=fault_postgres.url(),
            redis_url=fault_valkey.url(),
            bucket=bucket,
            home=tmp_path_factory.mktemp("fault-bench"),
        ) as bench,
    ):
        yield bench
