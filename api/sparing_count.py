"""A count that is made rarely, however many ask for it, and takes little of the database's time."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Generic, TypeVar

import structlog

from db.errors import DatabaseError

T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Counted(Generic[T]):
    """What was counted, and how many seconds ago."""

    value: T
    age_s: float


class SparingCount(Generic[T]):
    """Counts when asked, and not again for a while.

    Args:
        count: asks the database; a ``DatabaseError`` lets the last count stand.
        cache_s: for how long a count is used at least.
        share: a count is used for so many times as long as it took: counting takes one part in
            ``share`` of the database's time at most.
        longest_s: for how long a count is used at most. One that failed took as long as the
            database was waited for, and must not be missed for the better part of an hour.
        wait_s: for how long whoever asks waits for a count that he began; it goes on without him.
    """

    def __init__(
        self,
        count: Callable[[], T],
        *,
        cache_s: float,
        share: float,
        longest_s: float,
        wait_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count = count
        self._cache_s = cache_s
        self._share = share
        self._longest_s = longest_s
        self._wait_s = wait_s
        self._clock = clock
        self._counting = Lock()
        self._last: tuple[T, float] | None = None
        self._valid_until = -math.inf

    def get(self) -> Counted[T] | None:
        """Return the newest count; None: none could be made yet, or the first is being made.

        Whoever finds somebody counting, or counts for too long, takes the last count.
        """
        if self._clock() >= self._valid_until and self._counting.acquire(blocking=False):
            counting = Thread(target=self._count_and_release, name="sparing count", daemon=True)
            counting.start()
            counting.join(self._wait_s)
        last = self._last
        return None if last is None else Counted(last[0], self._clock() - last[1])

    def _count_and_release(self) -> None:
        try:
            self._count_anew()
        finally:
            self._counting.release()

    def _count_anew(self) -> None:
        began = self._clock()
        if began < self._valid_until:
            return  # somebody else has, just before
        try:
            self._last = (self._count(), began)
        except DatabaseError:
            log.warning("fleet not counted, an older count is shown")
        now = self._clock()
        sparing_s = min(self._share * (now - began), self._longest_s)
        self._valid_until = now + max(self._cache_s, sparing_s)
