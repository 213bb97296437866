"""Keeps servers and programs running, and stops them in the right order."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cli.stack.errors import StackError, raise_if_set

READY_TIMEOUT_S = 120.0  # a first start imports everything, on a machine that does other things
_POLL_S = 0.2
_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0  # running this long wipes out earlier failures


class Supervised(Protocol):
    """A server or a program."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def start(self) -> None:
        """Run it."""

    def wait_ready(self, timeout_s: float, stop: threading.Event) -> None:
        """Return once it serves; raises once ``stop`` is set."""

    def exit_code(self) -> int | None:
        """Return how it ended; None while it runs."""

    def limit_log(self) -> None:
        """Cut its log when that has grown too large."""

    def restart(self) -> None:
        """Run it again after it died."""

    def ask_to_stop(self) -> None:
        """Ask it to end, without waiting."""

    def stop(self) -> None:
        """End it, in order when it can, and all that it started."""


@dataclass
class _Watched:
    supervised: Supervised
    running_since_s: float
    failures: int = 0
    restart_at_s: float | None = None


class Supervisor:
    """Runs groups: all of a group are started together, and later groups stop first.

    Args:
        report: takes a line for people about each thing that happens.
        stop: set by whoever wants everything to end.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        stop: threading.Event,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._stop = stop
        self._clock = clock
        self._groups: list[list[_Watched]] = []

    def start(
        self, group: Sequence[Supervised], *, ready_timeout_s: float = READY_TIMEOUT_S
    ) -> None:
        """Start a group and wait until each of it serves.

        Raises:
            StackError: one of it does not; what was started stays to be stopped.
            StackStoppedError: everything is to end.
        """
        watched: list[_Watched] = []
        self._groups.append(watched)
        started_at_s = self._clock()
        raise_if_set(self._stop)
        self._report(f"starting {', '.join(each.name for each in group)}")
        for supervised in group:
            raise_if_set(self._stop)
            supervised.start()
            watched.append(_Watched(supervised, running_since_s=self._clock()))
        for each in watched:
            each.supervised.wait_ready(ready_timeout_s, self._stop)
            self._report(f"{each.supervised.name}: running ({self._clock() - started_at_s:.1f} s)")

    def watch(self) -> None:
        """Restart what dies, until asked to stop."""
        while not self._stop.wait(_POLL_S):
            self.look()

    def look(self) -> None:
        """Look at each once, keep its log small, and restart those that are due."""
        for group in self._groups:
            for watched in group:
                self._look_at(watched)

    def stop(self) -> None:
        """Stop everything, the last group first; within one all are asked at once."""
        while self._groups:
            group = self._groups.pop()
            for watched in reversed(group):
                watched.supervised.ask_to_stop()
            for watched in reversed(group):
                watched.supervised.stop()
                self._report(f"{watched.supervised.name}: stopped")

    def _look_at(self, watched: _Watched) -> None:
        watched.supervised.limit_log()
        exit_code = watched.supervised.exit_code()
        if exit_code is None:
            return
        if watched.restart_at_s is None:
            self._plan_restart(watched, f"ended with {exit_code}")
        elif self._clock() >= watched.restart_at_s:
            self._restart(watched)

    def _plan_restart(self, watched: _Watched, reason: str) -> None:
        if self._clock() - watched.running_since_s >= _STEADY_S:
            watched.failures = 0
        pause_s = min(2.0**watched.failures, _LONGEST_PAUSE_S)
        watched.failures += 1
        watched.restart_at_s = self._clock() + pause_s
        self._report(f"{watched.supervised.name}: {reason}, starts again in {pause_s:g} s")

    def _restart(self, watched: _Watched) -> None:
        watched.running_since_s = self._clock()
        watched.restart_at_s = None
        try:
            watched.supervised.restart()
        except StackError as error:
            self._plan_restart(watched, f"did not start: {error}")
        else:
            self._report(f"{watched.supervised.name}: started again")
