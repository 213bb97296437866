"""The machine under a measurement: without it, its figures say little."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any, Final

_YARDSTICK_ROUNDS: Final = 400
_YARDSTICK: Final = {"pages": [{"number": n, "text": "ledger " * 8} for n in range(20)]}


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, memory and present load."""
    return {
        "processor": _processor(),
        "cores": core_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": [round(each, 2) for each in os.getloadavg()],
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
    }


def core_count() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def yardstick_ms() -> float:
    """Return the processor time of a fixed piece of work, some tens of milliseconds.

    Waiting for a core is not counted, but what a neighbor takes away of a core's speed is. Taken
    again and again through a long measurement, it tells a machine that grew slow from a program.
    """
    began_s = time.thread_time()
    for _ in range(_YARDSTICK_ROUNDS):
        json.loads(json.dumps(_YARDSTICK))
    return 1e3 * (time.thread_time() - began_s)


def restrict_to(cores: int) -> None:
    """Let this process and all that it starts use so many cores, and no more than it may now."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(allowed[:cores]))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
