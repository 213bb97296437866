"""What the death of a worker costs: time, but no page and no letter."""

import os
import signal

import pytest
import redis

from cli.samples import Sample
from tests.support.fleet import Fleet

TIMEOUT_S = 300
BATCH = ["letters.pdf", "scanned-letters.pdf", "chinese-inventory.pdf", "register.tiff"]
RECOGNIZER = ("worker", "--queues", "recognize", "--slots", "2")
# So long that a test which waited for the lease would fail.
ENDLESS_LEASE_S = "3000"

pytestmark = pytest.mark.timeout(900)


def test_killed_workers_cost_no_page_and_change_no_result(
    fleet: Fleet, samples: dict[str, Sample]
) -> None:
    paths = [samples[name].path for name in BATCH]
    undisturbed = fleet.results(fleet.submit_all(paths), timeout_s=TIMEOUT_S)

    ids = fleet.submit_all(paths)
    os.kill(fleet.wait_for_claim(), signal.SIGKILL)
    fleet.wait_for_claim()
    fleet.kill_group("recognizer")
    fleet.start("recognizer", *RECOGNIZER)
    disturbed = fleet.results(ids, timeout_s=TIMEOUT_S)

    assert disturbed == undisturbed


def test_a_worker_that_is_asked_to_end_gives_its_chunk_back_at_once(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    idle_fleet.environment["PAGEFLEET_LEASE_S"] = ENDLESS_LEASE_S
    idle_fleet.environment["PAGEFLEET_SOFT_SHUTDOWN_S"] = "1"
    idle_fleet.start_all()
    document_id = idle_fleet.submit(samples["dense-index.png"].path)
    idle_fleet.wait_for_claim()

    idle_fleet.terminate("recognizer")
    idle_fleet.start("recognizer", *RECOGNIZER)
    view = idle_fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert view["state"] == "succeeded"
    with idle_fleet.database.transaction() as session:
        rows = session.connection().exec_driver_sql("SELECT attempt, excused FROM chunks").all()
    assert [tuple(row) for row in rows] == [(2, 1)]


def test_a_broker_that_forgets_everything_loses_no_document(
    fleet: Fleet, samples: dict[str, Sample], redis_url: str
) -> None:
    ids = fleet.submit_all(samples[name].path for name in BATCH)
    fleet.wait_for_claim()

    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    views = [
        fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S) for document_id in ids.values()
    ]

    assert {view["state"] for view in views} == {"succeeded"}
