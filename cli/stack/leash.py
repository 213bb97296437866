"""Ends whole process trees when this process is gone, even by ``kill -9``."""

import subprocess
import sys
from pathlib import Path

from cli.stack import leash_guard


class Leash:
    """A small program that watches this process through a pipe.

    The kernel's parent-death signal reaches direct children on Linux only. The guard ends
    their process groups, so grandchildren too, and does so on every system.
    """

    def __init__(self) -> None:
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the guard; before it runs nothing is held."""
        self._guard = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", str(Path(leash_guard.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C at the terminal must not end the guard first
        )

    def hold(self, process_group: int, signal_number: int) -> None:
        """Have the group sent this signal, and SIGKILL 5 s later, when this process is gone."""
        self._tell(f"hold {process_group} {signal_number}\n")

    def release(self, process_group: int) -> None:
        """Forget a group that has ended, before its number is used again."""
        self._tell(f"release {process_group}\n")

    def stop(self) -> None:
        """End the guard, and with it every group that is still held."""
        if self._guard is not None:
            self._guard.communicate(timeout=leash_guard.GRACE_S + 5)
            self._guard = None

    def _tell(self, line: str) -> None:
        if self._guard is None or self._guard.stdin is None:
            raise RuntimeError("the leash is not started")
        try:
            self._guard.stdin.write(line.encode("ascii"))
            self._guard.stdin.flush()
        except BrokenPipeError:
            # Somebody killed the guard. The parent-death signal still ends direct children,
            # and a stack that serves people is not stopped for its second belt.
            pass
