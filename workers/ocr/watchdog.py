"""A bound on every inference: past it the process ends, since a hung runtime cannot be stopped."""

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.inference import Session

# EX_PROTOCOL, which nothing else of the project ends with: the work was not put back, so its
# lease has to end before it is sent again.
EXIT_HUNG: Final = 76
# A watchdog without anything to watch lets its thread go after so long.
_IDLE_S: Final = 10.0


class Watchdog:
    """Watches calls of any number of threads from one thread of its own."""

    def __init__(
        self,
        timeout_s: float,
        *,
        on_overtime: Callable[[], None] | None = None,
        before_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a watchdog; its thread starts with the first call.

        Args:
            timeout_s: seconds that a call may take.
            on_overtime: called in the watching thread when one takes longer; None ends the
                process with ``EXIT_HUNG``.
            before_end: called before the process ends; must not wait for the thread that hangs.
        """
        self._before_end = before_end
        self._timeout_s = timeout_s
        self._on_overtime = on_overtime or self._end_process
        self._changed = threading.Condition()
        self._deadlines: dict[int, float] = {}
        self._numbers = itertools.count()
        self._is_watching = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the body."""
        with self._changed:
            number = next(self._numbers)
            self._deadlines[number] = time.monotonic() + self._timeout_s
            if not self._is_watching:
                self._is_watching = True
                threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
            elif len(self._deadlines) == 1:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadlines.pop(number, None)

    def _watch(self) -> None:
        while True:
            with self._changed:
                if not self._deadlines:
                    self._changed.wait(_IDLE_S)
                if not self._deadlines:
                    self._is_watching = False
                    return
                # All calls have the same time, so the oldest is the first to be late.
                number, deadline = next(iter(self._deadlines.items()))
                remaining_s = deadline - time.monotonic()
                if remaining_s > 0:
                    self._changed.wait(remaining_s)
                    continue
                del self._deadlines[number]
            self._on_overtime()

    def _end_process(self) -> None:
        sys.stderr.write(
            f"an inference took longer than {self._timeout_s:g} s;"
            f" this process ends with code {EXIT_HUNG}\n"
        )
        sys.stderr.flush()
        self._before_end()
        # An orderly exit would wait for the thread that hangs.
        os._exit(EXIT_HUNG)


class WatchedSession:
    """A session whose runs are bounded in time."""

    def __init__(self, session: Session, watchdog: Watchdog) -> None:
        self._session = session
        self._watchdog = watchdog

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        with self._watchdog.watching():
            return self._session.run(pixels, widths_px)
