"""The database goes away at the worst moments; what is in doubt afterwards is looked up."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from cli.stack.postgres import Postgres
from tests.support.fault_bench import SETTINGS, FaultBench
from tests.support.fleet import wait_for
from tests.support.postgres_faults import HeldPostgres

pytestmark = pytest.mark.timeout(600)

# Past the lease, so that every claim ends meanwhile, and past the time for which anybody asks what
# became of a COMMIT; a minute would only take longer.
AWAY_S = 4 * float(SETTINGS["PAGEFLEET_LEASE_S"])
LOST_ANSWERS_S = 3.0


def cut_connection(held: HeldPostgres, _server: Postgres) -> None:
    assert held.end_sleepers() > 0


def crash(_held: HeldPostgres, server: Postgres) -> None:
    server.kill()
    server.restart()


def stop_in_order(server: Postgres) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGINT)
    wait_for("the end of the server", lambda: server.exit_code() is not None, timeout_s=30)


@pytest.fixture
def held(fault_postgres: Postgres) -> HeldPostgres:
    return HeldPostgres(fault_postgres.url())


@pytest.mark.parametrize("place", ["claim", "commit"])
@pytest.mark.parametrize("fault", [cut_connection, crash])
def test_a_database_that_fails_at_claim_or_commit_costs_no_document(
    bench: FaultBench,
    fault_postgres: Postgres,
    held: HeldPostgres,
    place: str,
    fault: Callable[[HeldPostgres, Postgres], None],
) -> None:
    with bench.batch_under_way() as ids, held.held_at(place):
        fault(held, fault_postgres)

    bench.check(ids)


def test_a_database_that_is_restarted_in_order_costs_no_document(
    bench: FaultBench, fault_postgres: Postgres
) -> None:
    with bench.batch_under_way() as ids:
        stop_in_order(fault_postgres)
        fault_postgres.restart()

    bench.check(ids)


def test_a_database_that_is_away_for_longer_than_a_lease_costs_no_document(
    bench: FaultBench, fault_postgres: Postgres
) -> None:
    with bench.batch_under_way() as ids:
        fault_postgres.kill()
        time.sleep(AWAY_S)
        fault_postgres.restart()

    bench.check(ids)


def test_commits_whose_answers_are_lost_are_neither_lost_nor_done_again(
    bench: FaultBench, held: HeldPostgres
) -> None:
    lost = 0

    with bench.batch_under_way() as ids, held.answers_of_commits_lost():
        until = time.monotonic() + LOST_ANSWERS_S
        while time.monotonic() < until:
            lost += held.end_commits()
            time.sleep(0.05)

    assert lost > 0
    bench.check(ids)
