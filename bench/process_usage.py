"""Processor time and memory of a process with all below it, as Linux counts them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_BYTES_PER_KIB: Final = 1024
# Of the command line of a process that Celery's pool has spawned.
_POOL_CHILD: Final = "billiard.spawn"
# Positions in /proc/PID/stat after the name, which may hold spaces: state is 0.
_PARENT, _USER, _SYSTEM, _WAITED_USER, _WAITED_SYSTEM, _STARTED = 1, 11, 12, 13, 14, 19


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes used.

    Attributes:
        cpu_s: user and system, of those that live and of those that were waited for.
        peak_bytes: sum of the most that each living one ever held resident. Pages that processes
            share are counted in each.
        resident_bytes: what they hold now.
        process_count: how many live.
    """

    cpu_s: float
    peak_bytes: int
    resident_bytes: int
    process_count: int


def usage_of_tree(pid: int) -> Usage:
    """Return what a process and its descendants used; those that end meanwhile are left out."""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    stats = _all_stats()
    tree = _tree(pid, stats)
    memory = [_memory(each) for each in tree]
    ticks = sum(
        int(stats[each][position])
        for each in tree
        for position in (_USER, _SYSTEM, _WAITED_USER, _WAITED_SYSTEM)
    )
    return Usage(
        cpu_s=ticks / ticks_per_s,
        peak_bytes=sum(peak for peak, _ in memory),
        resident_bytes=sum(resident for _, resident in memory),
        process_count=len(tree),
    )


def peaks_of_tree(pid: int) -> list[int]:
    """Return the most bytes that a process and each living descendant ever held resident."""
    return [_memory(each)[0] for each in _tree(pid, _all_stats())]


def resident_bytes(pid: int) -> int:
    """Return what one process holds resident now, 0 when it is gone."""
    return _memory(pid)[1]


def _all_stats() -> dict[int, list[str]]:
    stats = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        stats[int(entry.name)] = stat.rpartition(")")[2].split()
    return stats


def _tree(pid: int, stats: Mapping[int, Sequence[str]]) -> list[int]:
    parents = {each: int(stat[_PARENT]) for each, stat in stats.items()}
    found = [pid] if pid in parents else []
    for each in found:  # grows while it is walked
        found.extend(child for child, parent in parents.items() if parent == each)
    return found


def _memory(pid: int) -> tuple[int, int]:
    """Return peak and present resident bytes."""
    try:
        lines = (_PROC / str(pid) / "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0, 0
    fields = dict(line.split(":", 1) for line in lines.splitlines() if ":" in line)
    peak, resident = (
        int(fields.get(name, "0 kB").split()[0]) * _BYTES_PER_KIB for name in ("VmHWM", "VmRSS")
    )
    return peak, resident


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process, told from a later one that gets its number; ``command`` is its command line."""

    pid: int
    start_ticks: int
    command: str

    def is_alive(self) -> bool:
        """Tell whether it still runs."""
        return _mark(self.pid) == self


def children_of(pid: int) -> list[ProcessMark]:
    """Return the direct children of a process, oldest first; those that are gone are left out."""
    found = [_mark(each) for each, stat in _all_stats().items() if int(stat[_PARENT]) == pid]
    return sorted(filter(None, found), key=lambda mark: (mark.start_ticks, mark.pid))


def pool_children_of(worker_pid: int) -> list[ProcessMark]:
    """Return the processes of a worker's slots, oldest first, those that only start included."""
    return [child for child in children_of(worker_pid) if _POOL_CHILD in child.command]


def _mark(pid: int) -> ProcessMark | None:
    folder = _PROC / str(pid)
    try:
        stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return ProcessMark(pid, int(stat.rpartition(")")[2].split()[_STARTED]), command.strip())
