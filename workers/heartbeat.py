"""The file that says that a process lives: written by the process, read by probes.

Its time of change is the last sign of life. A process that ends in order takes it away.
"""

import json
import logging
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

# Not structlog: a probe imports this every few seconds.
log = logging.getLogger(__name__)

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9+._-]+")
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Sign:
    """What a heartbeat file says.

    Attributes:
        name: of the process.
        age_s: seconds since its last sign of life.
        pid: of the process; None where the file does not say.
    """

    name: str
    age_s: float
    pid: int | None


def default_file(home: Path, name: str) -> Path:
    """Return where a process of this name writes when no setting says another place."""
    return heartbeats_folder(home) / f"{_NOT_IN_NAMES.sub('-', name)}{_SUFFIX}"


def heartbeats_folder(home: Path) -> Path:
    """Return the folder of the heartbeats of a home."""
    return home / "heartbeats"


def started_file(heartbeat_file: Path) -> Path:
    """Return the file that is there once a slot of a worker has loaded its models and tried them.

    For probes of a start: a worker beats before that, and takes work only then.
    """
    return heartbeat_file.with_name(f"{heartbeat_file.name}.started")


class Heartbeat:
    """The heartbeat of this process."""

    def __init__(self, file: Path, *, name: str) -> None:
        self._file = file
        self._content = json.dumps({"name": name, "pid": os.getpid()}).encode()

    def beat(self, *, age_s: float = 0) -> None:
        """Say that the process showed a sign of life ``age_s`` seconds ago.

        A file that cannot be written is only logged: no work is given up for it.
        """
        try:
            self._write(time.time() - age_s)
        except OSError:
            log.warning("heartbeat not written", exc_info=True)

    def _write(self, at: float) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        partial.write_bytes(self._content)
        os.utime(partial, (at, at))
        # In one step: a reader never sees a half file, nor one that is younger than the sign.
        partial.replace(self._file)

    def remove(self) -> None:
        """Take the file away: the process ends in order, and nobody has to miss it."""
        self._file.unlink(missing_ok=True)


def read(file: Path) -> Sign | None:
    """Return what a heartbeat file says; None when there is none."""
    try:
        changed_at = file.stat().st_mtime
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return Sign(
        name=str(content.get("name", file.stem)),
        age_s=max(0.0, time.time() - changed_at),
        pid=content.get("pid"),
    )


def read_all(home: Path) -> list[Sign]:
    """Return what all heartbeats of a home say, by name."""
    files = sorted(heartbeats_folder(home).glob(f"[!.]*{_SUFFIX}"))
    return [sign for sign in map(read, files) if sign is not None]
