"""How much memory a pool child takes, by which Celery replaces one that takes too much."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from billiard import pool as _pool

pool: Any = _pool  # its types leave out what it imports
_KIB = 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def measure_with(render_child_pid: Callable[[], int | None]) -> None:
    """Let this pool child, after each task, be measured as it stands, its render child included.

    The pool's own figure is the most that the process alone ever had. It would replace a child
    that gave the memory of one large page back long ago, and overlook one whose reader leaks.

    Args:
        render_child_pid: the render child at the time; None while there is none.
    """
    peak_kib = pool.mem_rss

    def slot_kib() -> int:
        own = resident_bytes(os.getpid())
        if own is None:
            return int(peak_kib())  # no /proc, as on macOS
        pid = render_child_pid()
        return (own + ((pid and resident_bytes(pid)) or 0)) // _KIB

    pool.mem_rss = slot_kib


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process, what it shares included; None if nobody knows."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except OSError:
        return None
    return int(fields[1]) * _PAGE_BYTES
