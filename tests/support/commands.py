"""The command line in a process of its own, as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_pagefleet(
    *arguments: str | Path, timeout_s: float = 120, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``pagefleet`` to its end; ``environment`` is added, and names no other server."""
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "cli", *map(str, arguments)],
        check=False,
        input=stdin,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**_inherited(), **environment},
        timeout=timeout_s,
    )


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """How a command ended.

    Attributes:
        returncode: its exit status.
        stdout: what it wrote.
        stderr: likewise.
        cpu_s: processor time of itself and its children.
        peak_mib: resident memory of itself or a child, whichever had more.
    """

    returncode: int
    stdout: str
    stderr: str
    cpu_s: float
    peak_mib: float


# Linux counts the memory of whoever starts a program to the program's own peak: the tests' process
# may hold gigabytes, this one holds nothing.
_MEASURING = """
import json, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as figures:
    json.dump([code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024], figures)
"""


def measure_pagefleet(*arguments: str | Path, work_dir: Path, **environment: str) -> MeasuredRun:
    """Run ``pagefleet`` in a folder to its end, and see how much memory it had at most."""
    with (
        tempfile.NamedTemporaryFile("r") as figures,
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as stderr,
    ):
        program = [sys.executable, "-m", "cli", *map(str, arguments)]
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", _MEASURING, figures.name, *program],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=work_dir,
            env={**_inherited(), "PYTHONPATH": str(ROOT), **environment},
            start_new_session=True,
        )
        try:
            process.wait()
        finally:
            with suppress(ProcessLookupError):  # all has ended
                os.killpg(process.pid, signal.SIGKILL)
        stdout.seek(0)
        stderr.seek(0)
        code, cpu_s, peak_mib = json.load(figures)
        return MeasuredRun(code, stdout.read(), stderr.read(), cpu_s=cpu_s, peak_mib=peak_mib)


def _inherited() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PAGEFLEET_") or name in {"PAGEFLEET_MODELS_DIR", "PAGEFLEET_HOME"}
    }
