"""Errors of the embedded stack; each message says what to do."""

import threading
from pathlib import Path


class StackError(Exception):
    """Root: the embedded stack cannot do what was asked."""


class WheelMissingError(StackError):
    """A server's wheel is not installed, or has no build for this machine."""


class FolderLockedError(StackError):
    """Another stack works on the folder; ``owner_pid`` is its process, None when unknown."""

    def __init__(self, folder: Path, owner_pid: int | None) -> None:
        owner = "another process" if owner_pid is None else f"process {owner_pid}"
        super().__init__(
            f"{folder} is in use by {owner}; stop that stack first (`pagefleet down`), "
            "or choose another folder with PAGEFLEET_HOME"
        )
        self.folder = folder
        self.owner_pid = owner_pid


class FolderUnreachableError(StackError):
    """The user that Postgres runs as cannot work in any folder that was tried."""


class StackStoppedError(StackError):
    """The stack was asked to stop while it was starting."""


class ServerStartError(StackError):
    """A server or program ended, or was not ready in time; the message has its last log lines."""


class ProgramTimeoutError(ServerStartError):
    """A program that had to end by itself did not, and was killed."""


def raise_if_set(stop: threading.Event | None) -> None:
    """End a wait when the stack is asked to stop.

    Raises:
        StackStoppedError: ``stop`` is set.
    """
    if stop is not None and stop.is_set():
        raise StackStoppedError("stopped while starting")
