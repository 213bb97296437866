"""Keeps servers and programs running, and stops them in the right order."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cli.stack.errors import StackError, raise_if_set

READY_TIMEOUT_S = 120.0  # a first start imports everything, on a machine that does other things
_POLL_S = 0.2
_READY_POLL_S = 0.05
# Whoever watches a start of minutes wants to know that it goes on, and what it waits for.
_SAY_EVERY_S = 10.0
_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0  # running this long wipes out earlier failures


class Supervised(Protocol):
    """A server or a program."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def start(self) -> None:
        """Run it."""

    def is_ready(self) -> bool:
        """Ask it, briefly, whether it serves; raises where it has ended."""

    def not_ready(self, timeout_s: float) -> StackError:
        """Return the error that says what it was waited for in vain."""

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
        report: takes a line for people about each thing that happens; kept as ``report``.
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
        self.report = report
        self._stop = stop
        self._clock = clock
        self._groups: list[list[_Watched]] = []

    def start(
        self, group: Sequence[Supervised], *, ready_timeout_s: float = READY_TIMEOUT_S
    ) -> None:
        """Start a group and wait until each of it serves.

        Args:
            group: what is started together.
            ready_timeout_s: how long to wait for the next of it to serve.

        Raises:
            StackError: one of it does not; what was started stays to be stopped.
            StackStoppedError: everything is to end.
        """
        watched: list[_Watched] = []
        self._groups.append(watched)
        raise_if_set(self._stop)
        self.report(f"starting {', '.join(each.name for each in group)}")
        for supervised in group:
            raise_if_set(self._stop)
            supervised.start()
            watched.append(_Watched(supervised, running_since_s=self._clock()))
        self._wait_ready(watched, ready_timeout_s)

    def _wait_ready(self, group: Sequence[_Watched], timeout_s: float) -> None:
        """Report each as it comes to serve, and now and then what is still waited for."""
        began_s = said_at_s = came_at_s = self._clock()
        waiting = list(group)
        while left := [each for each in waiting if not self._has_come(each)]:
            now_s = self._clock()
            if len(left) < len(waiting):
                came_at_s = now_s
            waiting = left
            if now_s - came_at_s > timeout_s:
                raise waiting[0].supervised.not_ready(timeout_s)
            if now_s - said_at_s >= _SAY_EVERY_S:
                said_at_s = now_s
                names = ", ".join(each.supervised.name for each in waiting)
                self.report(f"waiting for {names} ({now_s - began_s:.0f} s)")
            self._stop.wait(_READY_POLL_S)
            raise_if_set(self._stop)

    def _has_come(self, watched: _Watched) -> bool:
        if not watched.supervised.is_ready():
            return False
        took_s = self._clock() - watched.running_since_s
        self.report(f"{watched.supervised.name}: running ({took_s:.1f} s)")
        return True

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
                self.report(f"{watched.supervised.name}: stopped")

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
        self.report(f"{watched.supervised.name}: {reason}, starts again in {pause_s:g} s")

    def _restart(self, watched: _Watched) -> None:
        watched.running_since_s = self._clock()
        watched.restart_at_s = None
        try:
            watched.supervised.restart()
        except StackError as error:
            self._plan_restart(watched, f"did not start: {error}")
        else:
            self.report(f"{watched.supervised.name}: started again")
