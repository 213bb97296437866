"""Waiting for an API that is full or away: all uploads together, as long as it asks for."""

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from cli.client import UNREACHABLE
from cli.errors import ApiError

T = TypeVar("T")

# An API that is moved to another machine comes back within it.
_UNREACHABLE_LIMIT_S: Final = 600.0
_FIRST_DELAY_S: Final = 1.0
_LONGEST_DELAY_S: Final = 30.0
_WAITED_FOR: Final = frozenset({408, 429, 502, 503, 504})
_FAULT: Final = 500
_FAULT_TRIES: Final = 5


class StoppedError(Exception):
    """The run is to end; what was not sent is sent by the next one."""


class Patience:
    """Makes calls again for as long as there is hope; threads share what the API asked of one.

    Args:
        stop: set when the run is to end.
        max_wait_s: the longest pause that is waited for.
        report: told when and why everybody pauses.
    """

    def __init__(
        self, stop: threading.Event, *, max_wait_s: float, report: Callable[[str], None]
    ) -> None:
        self._stop = stop
        self._max_wait_s = max_wait_s
        self._report = report
        self._lock = threading.Lock()
        self._until = 0.0

    def call(self, send: Callable[[], T]) -> T:
        """Return what a call returns; it may be made many times.

        Raises:
            ApiError: refused for good, or there is no more hope; see ``is_over``.
            StoppedError: the run is to end.
        """
        tries, began = 0, time.monotonic()
        while True:
            self._pause()
            try:
                return send()
            except ApiError as error:
                tries += 1
                delay_s = self._delay_s(error, tries, waited_s=time.monotonic() - began)
                if delay_s is None:
                    raise
                self._hold(delay_s, error)

    def _delay_s(self, error: ApiError, tries: int, *, waited_s: float) -> float | None:
        """Return how long to wait before the next try; None: there is none."""
        delay_s = min(_FIRST_DELAY_S * 2 ** (tries - 1), _LONGEST_DELAY_S)
        if error.code == UNREACHABLE:
            return delay_s if waited_s < _UNREACHABLE_LIMIT_S else None
        if error.status == _FAULT:
            return delay_s if tries < _FAULT_TRIES else None
        if error.status not in _WAITED_FOR:
            return None
        asked_s = delay_s if error.retry_after_s is None else error.retry_after_s
        return asked_s if asked_s <= self._max_wait_s else None

    def _hold(self, delay_s: float, error: ApiError) -> None:
        with self._lock:
            now = time.monotonic()
            is_news = now >= self._until
            self._until = max(self._until, now + delay_s)
        if is_news:
            self._report(f"{error.message} Goes on in {delay_s:g} s.")

    def _pause(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                left_s = self._until - time.monotonic()
            if left_s <= 0:
                return
            self._stop.wait(left_s)
        raise StoppedError


def is_of_one_file(error: ApiError) -> bool:
    """Say whether a refusal is about the file that was sent, and not about all."""
    return error.status in {413, 415, 422}
