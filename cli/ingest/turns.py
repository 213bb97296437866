"""The order in which files are found, where several threads work on them."""

import threading
from typing import Final

from cli.ingest.patience import StoppedError

_LOOK_S: Final = 0.2


class Turns:
    """Lets threads do one thing each, in the order in which their work was handed out.

    Whoever takes a turn passes it on, whatever becomes of the work, or sets ``stop``.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._changed = threading.Condition()
        self._taken = 0
        self._next = 0
        self._passed: set[int] = set()

    def take(self) -> "Turn":
        """Return the turn after all that were taken before."""
        with self._changed:
            self._taken += 1
            return Turn(self, self._taken - 1)

    def wait_for(self, number: int) -> None:
        with self._changed:
            while self._next < number:
                if self._stop.is_set():
                    raise StoppedError
                self._changed.wait(_LOOK_S)

    def pass_on(self, number: int) -> None:
        with self._changed:
            self._passed.add(number)
            while self._next in self._passed:
                self._passed.remove(self._next)
                self._next += 1
            self._changed.notify_all()


class Turn:
    """One place in the order."""

    def __init__(self, turns: Turns, number: int) -> None:
        self._turns = turns
        self._number = number
        self._is_over = False

    def wait(self) -> None:
        """Return when all turns before this one were passed on.

        Raises:
            StoppedError: nobody is to go on.
        """
        self._turns.wait_for(self._number)

    def pass_on(self) -> None:
        """Let the next one have its turn; more than once does nothing."""
        if not self._is_over:
            self._is_over = True
            self._turns.pass_on(self._number)
