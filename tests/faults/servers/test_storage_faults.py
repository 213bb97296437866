"""The object storage refuses, is slow, or no longer has what a row names."""

import time
from contextlib import ExitStack
from uuid import UUID

import pytest

from bench.faults.s3_proxy import Weather
from storage import keys
from tests.support.fault_bench import RECOGNIZERS, SETTINGS, TIMEOUT_S, FaultBench
from tests.support.fault_checks import check_ended_once
from tests.support.fleet import wait_for
from tests.support.processes import stopped

pytestmark = pytest.mark.timeout(600)

LEASE_S = float(SETTINGS["PAGEFLEET_LEASE_S"])
SLOW_SOURCE = Weather("slow", delay_s=1.5 * LEASE_S, matching="^GET .*/source$")


def state_of(bench: FaultBench, document_id: UUID) -> str:
    state: str = bench.fleet.document(document_id)["state"]
    return state


def attempts_at_chunks(bench: FaultBench, document_id: UUID) -> list[int]:
    return [
        int(attempt)
        for (attempt,) in bench.fleet.rows(
            "SELECT attempt FROM chunks WHERE document_id = %s", document_id
        )
    ]


def test_storage_that_refuses_for_longer_than_a_lease_costs_no_attempt(bench: FaultBench) -> None:
    with bench.batch_under_way() as ids, bench.storage.during(Weather("refuse")):
        time.sleep(1.5 * LEASE_S)

    bench.check(ids)
    assert bench.storage.troubled > 0


def test_storage_that_is_slower_than_a_lease_makes_nobody_lose_a_claim(bench: FaultBench) -> None:
    with bench.storage.during(SLOW_SOURCE):
        ids = bench.submit_one()
        bench.check(ids)

    assert attempts_at_chunks(bench, *ids.values()) == [1]


def test_a_source_that_is_gone_fails_its_document_at_once(bench: FaultBench) -> None:
    with stopped(bench.fleet.pid("assembler")):
        ids = bench.submit_one()
        (document_id,) = ids.values()
        bench.delete(keys.source_key(document_id))

    view = bench.fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert view["state"] == "failed"
    assert bench.fleet.rows(
        "SELECT attempt, excused, error_code FROM documents WHERE id = %s", document_id
    ) == [(1, 0, "internal")]
    check_ended_once(bench.fleet.database, ids.values())


def test_a_source_that_goes_after_the_split_fails_its_document_at_once(bench: FaultBench) -> None:
    with ExitStack() as stack:
        for name in RECOGNIZERS:
            stack.enter_context(stopped(bench.fleet.pid(name)))
        ids = bench.submit_one()
        (document_id,) = ids.values()
        wait_for(
            "the split",
            lambda: state_of(bench, document_id) == "recognizing",
            timeout_s=TIMEOUT_S,
        )
        bench.delete(keys.source_key(document_id))

    view = bench.fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert view["state"] == "failed"
    assert bench.fleet.rows(
        "SELECT attempt, state, error_code FROM chunks WHERE document_id = %s", document_id
    ) == [(1, "failed", "internal")]
    check_ended_once(bench.fleet.database, ids.values())


def test_pages_that_are_gone_fail_their_document_at_once(bench: FaultBench) -> None:
    with bench.storage.during(Weather("slow", delay_s=TIMEOUT_S, matching="^GET .*/chunks/")):
        ids = bench.submit_one()
        (document_id,) = ids.values()
        wait_for("the assembly", lambda: bench.storage.troubled, timeout_s=TIMEOUT_S)
        ((key,),) = bench.fleet.rows(
            "SELECT result_key FROM chunks WHERE document_id = %s", document_id
        )
        bench.delete(key)

    view = bench.fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert view["state"] == "failed"
    # One attempt at the split, one at the assembly.
    assert bench.fleet.rows(
        "SELECT attempt, error_code FROM documents WHERE id = %s", document_id
    ) == [(2, "internal")]
    check_ended_once(bench.fleet.database, ids.values())
