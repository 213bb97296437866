"""The broker fails in every way that it can; documents come later, and not twice."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from cli.stack.valkey import Valkey
from tests.support.fault_bench import STORAGE_DELAY_S, FaultBench

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def client(fault_valkey: Valkey) -> Iterator["redis.Redis[bytes]"]:
    with redis.Redis.from_url(fault_valkey.url()) as client:
        yield client


def test_uploads_without_a_broker_are_accepted_and_done_when_it_is_back(
    bench: FaultBench, fault_valkey: Valkey
) -> None:
    fault_valkey.kill()
    ids = bench.submit()
    fault_valkey.restart()

    bench.check(ids)


def test_a_broker_that_is_killed_in_the_middle_of_a_batch_costs_no_document(
    bench: FaultBench, fault_valkey: Valkey
) -> None:
    with bench.batch_under_way() as ids:
        fault_valkey.kill()
        time.sleep(1)
        fault_valkey.restart()

    bench.check(ids)


def test_a_broker_that_forgets_everything_costs_no_document(
    bench: FaultBench, client: "redis.Redis[bytes]"
) -> None:
    with bench.batch_under_way() as ids:
        for _ in range(5):
            client.flushall()
            time.sleep(STORAGE_DELAY_S)

    bench.check(ids)


@pytest.mark.parametrize("whose", [{"_type": "normal"}, {"skipme": True}], ids=["normal", "all"])
def test_connections_that_the_broker_cuts_cost_no_document(
    bench: FaultBench, client: "redis.Redis[bytes]", whose: dict[str, Any]
) -> None:
    cut = 0

    with bench.batch_under_way() as ids:
        for _ in range(3):
            cut += client.client_kill_filter(**whose)
            time.sleep(STORAGE_DELAY_S)

    assert cut > 0
    bench.check(ids)


def test_a_broker_without_memory_stops_work_and_loses_none(
    bench: FaultBench, client: "redis.Redis[bytes]"
) -> None:
    with bench.batch_under_way() as ids:
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(redis.exceptions.OutOfMemoryError):
                client.set("anything", "more")
            late_ids = bench.submit()
            time.sleep(5)
        finally:
            client.config_set("maxmemory", 0)

    bench.check(ids)
    bench.check(late_ids)
