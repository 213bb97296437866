"""A worker says when a slot of it has started, for the probes of its pod."""

import subprocess
from pathlib import Path

import pytest

from tests.support.commands import ROOT
from tests.support.fleet import Fleet, wait_for
from workers.heartbeat import started_file

PROBE = ROOT / "deploy" / "docker" / "pagefleet-probe"
START_LIMIT_S = 120.0
WORKER = ("worker", "--queues", "split", "--slots", "1")


@pytest.fixture
def heartbeat_file(tmp_path: Path) -> Path:
    return tmp_path / "run" / "heartbeat.json"


def has_started(heartbeat_file: Path) -> bool:
    asked = subprocess.run(  # noqa: S603 - a script of ours
        [str(PROBE), "started"],
        check=False,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "PAGEFLEET_HEARTBEAT_FILE": str(heartbeat_file)},
    )
    return asked.returncode == 0


def test_a_worker_has_started_once_a_slot_is_ready(idle_fleet: Fleet, heartbeat_file: Path) -> None:
    mark = started_file(heartbeat_file)
    mark.parent.mkdir()
    mark.write_text("of a worker that was killed", "utf-8")
    idle_fleet.start("splitter", *WORKER, PAGEFLEET_HEARTBEAT_FILE=str(heartbeat_file))

    wait_for("a slot", lambda: has_started(heartbeat_file), timeout_s=START_LIMIT_S)

    assert "slot ready" in (idle_fleet.logs / "splitter.log").read_text("utf-8")
    assert mark.read_text("utf-8") == ""  # of this worker


def test_a_worker_that_ends_in_order_leaves_no_mark(
    idle_fleet: Fleet, heartbeat_file: Path
) -> None:
    idle_fleet.start("splitter", *WORKER, PAGEFLEET_HEARTBEAT_FILE=str(heartbeat_file))
    wait_for("a slot", lambda: has_started(heartbeat_file), timeout_s=START_LIMIT_S)

    idle_fleet.terminate("splitter")

    assert list(heartbeat_file.parent.iterdir()) == []
