"""What the processes of one worker count together: files in a folder, which outlive a process.

The library writes a file for each process and kind of metric, and never takes one away; slots are
replaced for years. So what the dead have counted is moved into files of nobody, and their gauges
go with them.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from prometheus_client.core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Tells the library to count in files; it looks once, when it is imported."""

_NOBODY = 0  # no process has this id


def folder_of(heartbeat_file: Path) -> Path:
    """Return where the processes of the worker with this heartbeat count."""
    return heartbeat_file.with_name(f"{heartbeat_file.name}.metrics")


def prepare(folder: Path) -> None:
    """Make the folder empty: what a worker before this one counted is gone with its process."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


class MetricFiles(Collector):
    """The metrics of all processes of a worker; for its main process alone.

    Args:
        folder: of the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()

    def describe(self) -> Iterator[Metric]:
        """Return nothing: what there will be is not known before it is counted."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return what all processes have counted, the dead included."""
        with self._lock:
            # A process that is just starting, or died just then, has an empty one.
            files = [str(file) for file in self._all() if file.stat().st_size]
            merged = list(MultiProcessCollector.merge(files))
        return iter(merged)

    def bury_dead(self) -> None:
        """Move what dead processes have counted to nobody's files."""
        with self._lock:
            of_dead: dict[str, list[Path]] = defaultdict(list)
            for file in self._all():
                kind, _, pid = file.stem.rpartition("_")
                if int(pid) != _NOBODY and not _runs(int(pid)):
                    of_dead[kind].append(file)
            for kind, files in of_dead.items():
                if not kind.startswith("gauge"):
                    self._add_to_nobodys(kind, [file for file in files if file.stat().st_size])
                for file in files:
                    file.unlink()

    def _all(self) -> list[Path]:
        return sorted(self._folder.glob("*.db"))

    def _add_to_nobodys(self, kind: str, files: list[Path]) -> None:
        """Add counters, or the parts of histograms, to those of the dead before.

        In a copy that then takes the place of the file: what breaks off here is counted once.
        """
        target = self._folder / f"{kind}_{_NOBODY}.db"
        copy = self._folder / f"{kind}.new"
        copy.unlink(missing_ok=True)
        if target.exists():
            shutil.copyfile(target, copy)
        sums = MmapedDict(str(copy))
        try:
            for file in files:
                for key, value, _, _ in MmapedDict.read_all_values_from_file(str(file)):
                    before, _ = sums.read_value(key)
                    sums.write_value(key, before + value, 0.0)
        finally:
            sums.close()
        copy.replace(target)


def _runs(pid: int) -> bool:
    """Say whether there is such a process; one that took the id of a dead one keeps its file."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
