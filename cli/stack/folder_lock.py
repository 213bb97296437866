"""A lock on a folder that ends with the processes that hold it."""

import fcntl
import os
import threading
import time
from pathlib import Path

from cli.stack.errors import FolderLockedError

_LOCK_FILE = "lock"
_POLL_S = 0.05


class FolderLock:
    """A ``flock`` on ``<folder>/lock``; the kernel drops it when its last holder dies.

    A child that inherits ``descriptor`` holds the lock too. Servers do, so that after a
    ``kill -9`` of their parent nobody starts a second one on data the first still writes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open lock file, for a child to inherit.

        Raises:
            RuntimeError: the folder is not locked.
        """
        if self._descriptor is None:
            raise RuntimeError(f"{self._folder} is not locked")
        return self._descriptor

    def acquire(self, *, dying_owner_timeout_s: float = 15.0) -> None:
        """Take the lock.

        A living owner is reported at once. When the owner is dead, what it started is about
        to end, so the lock is waited for.

        Args:
            dying_owner_timeout_s: how long to wait for the children of a dead owner.

        Raises:
            FolderLockedError: somebody else has it.
        """
        descriptor = os.open(self._folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        deadline_s = time.monotonic() + dying_owner_timeout_s
        while not _try_lock(descriptor):
            owner_pid = _read_pid(descriptor)
            # Without a number in it, the file was only just made, or somebody looks at it.
            is_alive_owner = owner_pid is not None and is_alive(owner_pid)
            if is_alive_owner or time.monotonic() > deadline_s:
                os.close(descriptor)
                raise FolderLockedError(self._folder, owner_pid)
            threading.Event().wait(_POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def locked_by(folder: Path) -> int | None:
    """Return the process that took a folder's lock; None when nobody holds it."""
    try:
        descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(descriptor) else _read_pid(descriptor)
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    """Tell whether a process with this number exists, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None
