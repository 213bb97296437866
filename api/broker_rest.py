"""A broker that may be away is asked once in a while: no request waits for each attempt."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

from workers.dispatch import DispatchError

REST_S = 5.0

P = ParamSpec("P")
R = TypeVar("R")


class BrokerRest:
    """A pause after a failure: for ``rest_s`` seconds nobody asks the broker, and then one does.

    Until that one is answered the others go on without, so that they do not wait for a broker that
    is still away. All that ask it in a process share one rest, and learn of an outage together.
    """

    def __init__(
        self, *, rest_s: float = REST_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rest_s = rest_s
        self._clock = clock
        self._lock = Lock()
        self._is_away = False
        self._asks_again_at = -math.inf

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask the broker inside the block.

        Raises:
            DispatchError: it did not answer just now, and is not asked; or the block's own.
        """
        if not self._is_to_ask():
            raise DispatchError("the message broker did not answer just now")
        try:
            yield
        except DispatchError:
            self._note_away()
            raise
        self._note_back()

    def spared(self, ask: Callable[P, R]) -> Callable[P, R]:
        """Return a question to the broker as one that is asked like a block of ``asking``."""

        @wraps(ask)
        def ask_unless_it_rests(*args: P.args, **kwargs: P.kwargs) -> R:
            with self.asking():
                return ask(*args, **kwargs)

        return ask_unless_it_rests

    def _is_to_ask(self) -> bool:
        with self._lock:
            now = self._clock()
            if self._is_away and now < self._asks_again_at:
                return False
            if self._is_away:
                self._asks_again_at = now + self._rest_s
            return True

    def _note_away(self) -> None:
        with self._lock:
            self._is_away = True
            self._asks_again_at = self._clock() + self._rest_s

    def _note_back(self) -> None:
        with self._lock:
            self._is_away = False
