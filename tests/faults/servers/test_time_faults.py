"""Processes that stop for a while or die often, and messages that come too early."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from uuid import UUID

import psycopg
import pytest

from bench.faults.s3_proxy import Weather
from cli.stack.postgres import Postgres
from cli.stack.valkey import Valkey
from db.engine import IDLE_TIMEOUT_S
from tests.support.fault_bench import (
    ASSEMBLER,
    RECOGNIZERS,
    SETTINGS,
    STORAGE_DELAY_S,
    TIMEOUT_S,
    FaultBench,
)
from tests.support.fleet import wait_for
from tests.support.processes import pool_children, stopped
from tests.support.redelivery import deliver_again

pytestmark = pytest.mark.timeout(600)

LEASE_S = float(SETTINGS["PAGEFLEET_LEASE_S"])
KILLS = 50
# Whoever stores the pages of a chunk waits until the weather changes.
HELD_UP = Weather("slow", delay_s=TIMEOUT_S, matching="^PUT .*/chunks/")
# Longer than Celery gives a new pool child by default before it kills it.
SLOW_START_S = 6.0
# What waits for a lock on a row, and whose it is.
LOCK_WAITERS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE application_name = 'pagefleet' AND wait_event_type = 'Lock'"
)


@contextmanager
def held_chunk(bench: FaultBench) -> Iterator[tuple[dict[str, UUID], int]]:
    """Hold a document's only chunk up while its pages are stored; yields the child's process."""
    with bench.storage.during(HELD_UP):
        ids = bench.submit_one()
        pid = bench.fleet.wait_for_claim()
        wait_for("the pages", lambda: bench.storage.troubled, timeout_s=TIMEOUT_S)
        yield ids, pid


@contextmanager
def row_locked(postgres: Postgres, document_id: UUID) -> Iterator[None]:
    with psycopg.connect(postgres.url()) as connection:
        connection.execute("SELECT FROM documents WHERE id = %s FOR UPDATE", (document_id,))
        yield


def second_attempt(bench: FaultBench, ids: dict[str, UUID]) -> Callable[[], bool]:
    """Return what looks whether another child has claimed the chunk, and runs."""
    return lambda: (
        bench.fleet.rows(
            "SELECT attempt FROM chunks WHERE state = 'running' AND document_id = ANY(%s)",
            list(ids.values()),
        )
        == [(2,)]
    )


def lock_waiters(bench: FaultBench, count: int) -> Callable[[], bool]:
    return lambda: bench.fleet.rows(LOCK_WAITERS)[0][0] >= count


def pids_of_children(bench: FaultBench) -> list[int]:
    """Return the pool children of all workers as soon as there are any."""

    def look() -> list[int]:
        workers = [bench.fleet.pid(name) for name in (*RECOGNIZERS, ASSEMBLER)]
        return [child for worker in workers for child in pool_children(worker)]

    return wait_for("pool children", look, timeout_s=TIMEOUT_S)


def log_of(bench: FaultBench) -> str:
    return "".join((bench.fleet.logs / f"{name}.log").read_text() for name in RECOGNIZERS)


def test_a_message_that_is_delivered_again_while_its_task_runs_does_nothing_twice(
    bench: FaultBench, fault_valkey: Valkey
) -> None:
    skipped_before = log_of(bench).count("chunk skipped")

    def is_skipped() -> bool:
        deliver_again(fault_valkey.url())
        return log_of(bench).count("chunk skipped") > skipped_before

    with held_chunk(bench) as (ids, _):
        wait_for("the second delivery", is_skipped, timeout_s=TIMEOUT_S)

    bench.check(ids)


def test_a_child_that_was_stopped_past_its_lease_changes_nothing_when_it_goes_on(
    bench: FaultBench,
) -> None:
    ended_before = log_of(bench).count("work ended early")

    with ExitStack() as stop:
        with held_chunk(bench) as (ids, pid):
            stop.enter_context(stopped(pid))
        bench.check(ids)
    wait_for(
        "the end of the late attempt",
        lambda: log_of(bench).count("work ended early") > ended_before,
        timeout_s=TIMEOUT_S,
    )

    bench.check(ids)
    assert bench.fleet.rows(
        "SELECT attempt FROM chunks WHERE document_id = ANY(%s)", list(ids.values())
    ) == [(2,)]


def test_a_late_write_that_reaches_the_database_is_refused_there(
    bench: FaultBench, fault_postgres: Postgres
) -> None:
    with held_chunk(bench) as (ids, pid), row_locked(fault_postgres, *ids.values()):
        bench.storage.weather = Weather()
        wait_for("the write", lock_waiters(bench, 1), timeout_s=TIMEOUT_S)
        with stopped(pid):
            wait_for("another child", second_attempt(bench, ids), timeout_s=TIMEOUT_S)

    bench.check(ids)


def test_a_child_that_stops_inside_a_transaction_holds_nobody_up(
    bench: FaultBench, fault_postgres: Postgres
) -> None:
    with ExitStack() as stop:
        with held_chunk(bench) as (ids, pid), row_locked(fault_postgres, *ids.values()):
            bench.storage.weather = Weather()
            wait_for("the write", lock_waiters(bench, 1), timeout_s=TIMEOUT_S)
            stop.enter_context(stopped(pid))
        bench.check(ids, timeout_s=IDLE_TIMEOUT_S + TIMEOUT_S)

    bench.check(ids)


def test_a_whole_worker_that_stops_for_a_while_costs_no_document(bench: FaultBench) -> None:
    with bench.batch_under_way() as ids, stopped(bench.fleet.pid(RECOGNIZERS[0])):
        bench.storage.weather = Weather()
        bench.check(ids)

    bench.check(ids)
    bench.check(bench.submit())


def test_fifty_killed_children_cost_no_document(bench: FaultBench) -> None:
    chance = random.Random(50)  # noqa: S311 - no secret

    with bench.batch_under_way() as ids:
        late_ids = bench.submit()
        for kill in range(KILLS):
            # Every second one has work in hand, if any has; the others mostly are starting.
            pids = [pid for pid in bench.holders() if kill % 2] or pids_of_children(bench)
            # It may have ended meanwhile.
            with suppress(ProcessLookupError):
                os.kill(chance.choice(pids), signal.SIGKILL)
            time.sleep(chance.uniform(0, 2 * STORAGE_DELAY_S))

    bench.check_many_killed(ids)
    bench.check_many_killed(late_ids)
    # Some that were hit held a chunk.
    assert bench.fleet.rows(
        "SELECT max(attempt) > 1 FROM chunks WHERE document_id = ANY(%s)",
        [*ids.values(), *late_ids.values()],
    ) == [(True,)]


def test_a_replacement_child_that_starts_slowly_is_left_to_start(bench: FaultBench) -> None:
    slow, other = (bench.fleet.pid(name) for name in RECOGNIZERS)
    (child,) = wait_for("a child", lambda: pool_children(slow), timeout_s=TIMEOUT_S)

    with bench.slow_starts(SLOW_START_S):
        os.kill(child, signal.SIGKILL)
        (replacement,) = wait_for(
            "its replacement",
            lambda: set(pool_children(slow)) - {child},
            timeout_s=TIMEOUT_S,
        )
        with stopped(other):
            bench.check(bench.submit_one())

    assert pool_children(slow) == [replacement]
