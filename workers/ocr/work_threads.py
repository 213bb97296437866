"""Threads that take the most urgent call first, and stop at the first error."""

import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, order=True)
class _QueuedCall:
    urgency: tuple[int, ...]
    number: int
    call: Callable[[], None] = field(compare=False)


class WorkThreads:
    """A fixed number of threads over one heap of calls; close it to end them.

    A call that raises stops all threads after their present calls: what an error of a worker
    thread means is for the thread that owns the work to decide, and it is told at once.
    """

    def __init__(self, count: int, *, on_error: Callable[[BaseException], None]) -> None:
        """Start the threads.

        Args:
            count: of threads, positive.
            on_error: called once, in the thread that failed, with what a call raised.
        """
        self._on_error: Final = on_error
        self._changed = threading.Condition()
        self._calls: list[_QueuedCall] = []
        self._numbers = itertools.count()
        self._is_open = True
        # Daemons, so that a generator that nobody closed does not keep the interpreter alive.
        self._threads = [
            threading.Thread(target=self._work, name=f"ocr-{i}", daemon=True) for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, urgency: tuple[int, ...], call: Callable[[], None]) -> None:
        """Queue a call; the smallest urgency is next, of equals the first that came.

        After an error or ``close`` it is dropped.
        """
        with self._changed:
            if self._is_open:
                heapq.heappush(self._calls, _QueuedCall(urgency, next(self._numbers), call))
                self._changed.notify()

    def close(self) -> None:
        """Drop what is queued and wait for the calls that run."""
        self._stop()
        for thread in self._threads:
            thread.join()

    def _stop(self) -> bool:
        """Stop taking calls; True when it was this call that did it."""
        with self._changed:
            was_open, self._is_open = self._is_open, False
            self._calls.clear()
            self._changed.notify_all()
            return was_open

    def _work(self) -> None:
        while True:
            with self._changed:
                while self._is_open and not self._calls:
                    self._changed.wait()
                if not self._is_open:
                    return
                queued = heapq.heappop(self._calls)
            try:
                queued.call()
            except BaseException as exc:  # noqa: BLE001  it goes on in the thread that owns the work
                if self._stop():
                    self._on_error(exc)
                return
            # A thread that waits for the next call must not keep the pixels of the last one.
            del queued
