"""How often in a row the pool children of each slot did not start.

A child that cannot start ends itself, and the pool starts another: with a broken model file or
card for ever. The children count in files, because the worker's main process, which is to end
once no slot is left, hears nothing from a child that has not started.
"""

import shutil
from pathlib import Path

EXIT_NOT_STARTED = 78  # EX_CONFIG
MOST_STARTS = 3


class FailedStarts:
    """The counts of one worker.

    Args:
        heartbeat_file: of the worker; the counts lie beside it.
    """

    def __init__(self, heartbeat_file: Path) -> None:
        self._folder = heartbeat_file.with_name(f"{heartbeat_file.name}.failed-starts")

    def forget(self) -> None:
        """Begin with none, or leave nothing behind."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, slot: int) -> None:
        """Count one more for a slot, in its pool child."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file(slot).write_text(str(self.count(slot) + 1), "utf-8")

    def clear(self, slot: int) -> None:
        """Note that a slot has started."""
        self._file(slot).unlink(missing_ok=True)

    def count(self, slot: int) -> int:
        """Return how many children of a slot did not start since one did."""
        try:
            return int(self._file(slot).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return 0

    def is_hopeless(self, slots: int) -> bool:
        """Tell whether every slot has used up its starts; one that works is worth keeping."""
        return all(self.count(slot) >= MOST_STARTS for slot in range(slots))

    def _file(self, slot: int) -> Path:
        return self._folder / str(slot)
