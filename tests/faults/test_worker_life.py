"""What keeps a worker at work for weeks: heartbeat, watch over itself, new children."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.samples import Sample
from tests.support.commands import ROOT, run_pagefleet
from tests.support.fleet import Fleet, wait_for
from tests.support.processes import pool_children, stopped
from workers.settings import models_dir
from workers.tasks.failed_starts import EXIT_NOT_STARTED, MOST_STARTS
from workers.tasks.worker_life import EXIT_STALLED

TIMEOUT_S = 300
START_LIMIT_S = 120
BATCH = ["letters.pdf", "scanned-letters.pdf", "chinese-inventory.pdf"]
ONE_SLOT = ("worker", "--queues", "recognize", "--slots", "1")

pytestmark = pytest.mark.timeout(900)


def start_with_one_slot(fleet: Fleet, **settings: str) -> int:
    """Start everything and return the pool child of the only slot that recognizes."""
    fleet.start("api", "api")
    fleet.start("recognizer", *ONE_SLOT, **settings)
    fleet.start("assembler", "worker", "--queues", "split,assemble", "--slots", "1")
    fleet.start("reconciler", "reconcile")
    log = fleet.logs / "recognizer.log"
    wait_for(
        "a worker",
        lambda: " ready." in log.read_text("utf-8"),
        timeout_s=START_LIMIT_S,
    )
    fleet.wait_for_api()
    (child,) = pool_children(fleet.pid("recognizer"))
    return child


def stop_consuming(fleet: Fleet) -> None:
    """Do what a lost reconnection does: the worker lives, answers, and takes nothing any more."""
    subprocess.run(  # noqa: S603 - Celery's own program
        [
            *(sys.executable, "-m", "celery", "-A", "workers.app", "control", "--timeout", "30"),
            *("cancel_consumer", "recognize"),
        ],
        cwd=ROOT,
        env=fleet.environment,
        check=True,
        capture_output=True,
    )


def test_a_worker_that_takes_nothing_from_a_full_queue_is_ended_and_its_successor_works(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    start_with_one_slot(idle_fleet, PAGEFLEET_STALL_TIMEOUT_S="8")
    stop_consuming(idle_fleet)
    document_id = idle_fleet.submit(samples["letters.pdf"].path)

    status = idle_fleet.wait_for_end("recognizer", timeout_s=TIMEOUT_S)
    idle_fleet.start("recognizer", *ONE_SLOT)
    view = idle_fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert status == EXIT_STALLED
    assert view["state"] == "succeeded"


def test_a_worker_with_a_long_task_and_a_full_queue_goes_on(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    # A scanned letter takes longer than this, and three of them wait for the one slot.
    start_with_one_slot(idle_fleet, PAGEFLEET_STALL_TIMEOUT_S="1")
    ids = [idle_fleet.submit(samples["scanned-letters.pdf"].path) for _ in range(3)]

    views = [idle_fleet.wait_until_final(each, timeout_s=TIMEOUT_S) for each in ids]

    assert {view["state"] for view in views} == {"succeeded"}
    assert idle_fleet.is_running("recognizer")


def test_slots_over_their_memory_are_replaced_and_no_work_is_lost(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    # A message that is sent twice would cost a new start here, which takes longer than most waits.
    idle_fleet.environment["PAGEFLEET_DISPATCH_GRACE_S"] = "120"
    # Every slot has more: it is replaced after each task.
    start_with_one_slot(idle_fleet, PAGEFLEET_SLOT_HOST_MEMORY_BYTES=str(2**20))
    ids = idle_fleet.submit_all(samples[name].path for name in BATCH)

    views = [idle_fleet.wait_until_final(each, timeout_s=TIMEOUT_S) for each in ids.values()]

    log = (idle_fleet.logs / "recognizer.log").read_text("utf-8")
    assert {view["state"] for view in views} == {"succeeded"}
    assert idle_fleet.is_running("recognizer")
    assert log.count("slot is replaced") >= len(BATCH)
    assert log.count("slot ready") >= len(BATCH)
    assert idle_fleet.rows("SELECT max(attempt) FROM chunks") == [(1,)]


def test_a_hung_task_is_killed_and_its_pages_are_read_by_the_next_child(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    start_with_one_slot(idle_fleet, PAGEFLEET_TASK_HARD_LIMIT_S="30")
    document_id = idle_fleet.submit(samples["letters.pdf"].path)
    hung = idle_fleet.wait_for_claim()

    os.kill(hung, signal.SIGSTOP)
    view = idle_fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert view["state"] == "succeeded"
    assert idle_fleet.is_running("recognizer")
    assert hung not in pool_children(idle_fleet.pid("recognizer"))


def test_a_worker_whose_slots_never_start_ends_and_says_so(
    idle_fleet: Fleet, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    shutil.copytree(models_dir(), models, symlinks=True)
    child = start_with_one_slot(idle_fleet, PAGEFLEET_MODELS_DIR=str(models))
    shutil.rmtree(models)

    os.kill(child, signal.SIGKILL)
    status = idle_fleet.wait_for_end("recognizer", timeout_s=TIMEOUT_S)

    log = (idle_fleet.logs / "recognizer.log").read_text("utf-8")
    assert status == EXIT_NOT_STARTED
    assert log.count("slot did not start") >= MOST_STARTS
    assert "no slot can start" in log


def alive(fleet: Fleet, *arguments: str, limit_s: str = "60") -> "subprocess.CompletedProcess[str]":
    return run_pagefleet(
        "alive",
        *arguments,
        PAGEFLEET_HOME=fleet.environment["PAGEFLEET_HOME"],
        PAGEFLEET_HEARTBEAT_LIMIT_S=limit_s,
    )


def dead(
    answer: "subprocess.CompletedProcess[str]",
) -> "subprocess.CompletedProcess[str] | None":
    return answer if answer.returncode == 1 else None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recognize", ONE_SLOT),
        ("split+assemble", ("worker", "--queues", "split,assemble", "--slots", "1")),
        ("reconcile", ("reconcile",)),
    ],
)
def test_a_process_that_hangs_is_not_alive_until_it_goes_on(
    idle_fleet: Fleet, name: str, arguments: tuple[str, ...]
) -> None:
    idle_fleet.start("watched", *arguments)
    wait_for(
        "a heartbeat",
        lambda: alive(idle_fleet, name).returncode == 0,
        timeout_s=START_LIMIT_S,
    )

    with stopped(idle_fleet.pid("watched")):
        hanging = wait_for(
            "a dead heartbeat",
            lambda: dead(alive(idle_fleet, name, limit_s="5")),
            timeout_s=START_LIMIT_S,
        )

    assert "it hangs or was killed" in hanging.stderr
    wait_for(
        "a heartbeat",
        lambda: alive(idle_fleet, name, limit_s="20").returncode == 0,
        timeout_s=START_LIMIT_S,
    )
    idle_fleet.terminate("watched")
    ended = alive(idle_fleet, name)
    assert ended.returncode == 1
    assert "no heartbeat" in ended.stderr
