"""The hook harms the process that was asked for, once, and leaves all others alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from bench.faults.kill_points import KillPoint, hook_environment

POINTS = {
    "before": KillPoint("colorsys:rgb_to_hsv", "before"),
    "after": KillPoint("colorsys:rgb_to_hsv", "after"),
    "of_a_task": KillPoint("glob:escape", "before", task="pages.read"),
}
CALL = "import colorsys; colorsys.rgb_to_hsv(0, 0, 0); print('lived')"
SPAWN = """
import colorsys, multiprocessing
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=colorsys.rgb_to_hsv, args=(0, 0, 0))
    child.start()
    child.join()
    print(child.exitcode)
"""


def run(redis_url: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - the test's own code
        [sys.executable, *arguments],
        env={"PATH": os.environ["PATH"], **hook_environment(redis_url, POINTS)},
        capture_output=True,
        text=True,
        check=False,
    )


def arm(redis_url: str, point: str, action: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.rpush(f"faults:{point}", action)


@pytest.mark.parametrize("point", ["before", "after"])
def test_an_armed_point_kills_one_process_and_not_the_next(redis_url: str, point: str) -> None:
    arm(redis_url, point, "child")

    first, second = run(redis_url, "-c", CALL), run(redis_url, "-c", CALL)

    assert first.returncode == -signal.SIGKILL
    assert (second.returncode, second.stdout) == (0, "lived\n")


def test_a_process_crashes_in_native_code(redis_url: str) -> None:
    arm(redis_url, "before", "abort")

    assert run(redis_url, "-c", CALL).returncode == -signal.SIGABRT


def test_an_allocation_is_refused(redis_url: str) -> None:
    arm(redis_url, "before", "memory")

    assert run(redis_url, "-c", CALL).stderr.endswith("MemoryError: on purpose\n")


def test_a_spawned_child_is_killed_alone(redis_url: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SPAWN)
    arm(redis_url, "before", "child")

    assert run(redis_url, str(program)).stdout == f"{-signal.SIGKILL}\n"


def test_a_call_about_another_task_passes(redis_url: str) -> None:
    arm(redis_url, "of_a_task", "child")
    call = "import glob, sys; glob.escape(sys.argv[1])"

    other, meant = (run(redis_url, "-c", call, task) for task in ("pages.split", "pages.read"))

    assert (other.returncode, meant.returncode) == (0, -signal.SIGKILL)
