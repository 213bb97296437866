"""Looks at real processes from outside."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.process_usage import children_of, pool_children_of

ROOT = Path(__file__).resolve().parent.parent.parent
_POLL_S = 0.02


def wait_until(holds: Callable[[], bool], *, timeout_s: float = 20.0) -> None:
    """Return once ``holds`` says so; an assertion fails when it never does."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, "waited in vain"
        threading.Event().wait(_POLL_S)


def are_gone(pids: Iterable[int]) -> bool:
    """Tell whether none of these runs; one that only waits to be reaped does not."""
    states = subprocess.run(  # noqa: S603 - numbers only
        ["ps", "-o", "stat=", "-p", ",".join(map(str, pids))],  # noqa: S607 - wherever it lies
        capture_output=True,
        text=True,
        check=False,
    )
    return all(line.startswith("Z") for line in states.stdout.split())


@contextmanager
def running_python(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python code that may import the project; its output can be read line by line."""
    process = subprocess.Popen(  # noqa: S603 - the test's own code
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,  # left open, so that code can wait for its end
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line of what the process writes."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@contextmanager
def stopped(pid: int | None) -> Iterator[None]:
    """Stop a process and all that it started: its connections stand, and nothing answers them."""
    assert pid is not None
    family = [pid]
    for each in family:  # grows while it is gone through
        family += [child.pid for child in children_of(each)]
    for each in family:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in reversed(family):
            os.kill(each, signal.SIGCONT)


def pool_children(worker_pid: int) -> list[int]:
    """Return the processes of the slots of a worker, those that are only starting included."""
    return [child.pid for child in pool_children_of(worker_pid)]
