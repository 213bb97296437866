"""Whether the system takes more work: counted in pages and pixels, never in requests."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

import structlog

from api.errors import ApiError
from api.intake_settings import IntakeSettings
from db import admission, content_cache
from db.admission import KeyUse, OpenWork
from db.content_cache import CacheUse
from db.engine import Transaction
from db.errors import DatabaseUnavailableError
from db.models import Document
from db.states import Priority

DRAIN_WINDOW_S = 300.0
MIN_RETRY_S = 5
MAX_RETRY_S = 300
_UNKNOWN_RATE_RETRY_S = 60
_ESTIMATED = "Until a document is split its pages are estimated, so the number may lie above."
_RAISE = "ask whoever runs the system for a higher quota, with `pagefleet keys quota`."
# Counting a million open documents takes a fraction of a second of the database: never more than
# a twentieth of its time.
_SHARE_OF_COUNTING = 20

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one priority may be open before further documents are refused."""

    pages: int
    pixels: int

    def are_reached_by(self, work: OpenWork) -> bool:
        return work.pages >= self.pages or work.pixels >= self.pixels


@dataclass(frozen=True, slots=True)
class Load:
    """What the system has to do.

    Attributes:
        open: by priority, with what this process has accepted since it was counted.
        pages_in_flight: held by workers.
        pages_per_s: that became final, over the last ``DRAIN_WINDOW_S``.
        cache: documents that became final in that time, and those that were not read for it.
    """

    open: Mapping[Priority, OpenWork]
    pages_in_flight: int
    pages_per_s: float
    cache: CacheUse = field(default_factory=CacheUse)


def limits_of(settings: IntakeSettings) -> Mapping[Priority, Limits]:
    """Return the limits that the settings name."""
    return {
        Priority.INTERACTIVE: Limits(
            settings.api_max_open_pages_interactive, settings.api_max_open_pixels_interactive
        ),
        Priority.BULK: Limits(settings.api_max_open_pages_bulk, settings.api_max_open_pixels_bulk),
    }


def count_load(transaction: Transaction) -> Load:
    """Count what there is to do.

    Raises:
        DatabaseError: the database cannot be asked.
    """
    with transaction() as session:
        return Load(
            open=admission.open_work(session),
            pages_in_flight=admission.pages_in_flight(session),
            pages_per_s=admission.pages_finished(session, window_s=DRAIN_WINDOW_S) / DRAIN_WINDOW_S,
            cache=content_cache.cache_use(session, window_s=DRAIN_WINDOW_S),
        )


class Admission:
    """Knows how much is open; counts it rarely, and adds what it has let in meanwhile.

    Documents are let in while there is room at all, whatever their own size: it is only guessed,
    and a large one would never fit beside a stream of small ones. So a limit may be passed by what
    is on its way when it is reached, and, with several processes, by what the others accept within
    the time for which a count is used.
    """

    def __init__(
        self,
        count: Callable[[], Load],
        limits: Mapping[Priority, Limits],
        *,
        cache_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._count = count
        self._cache_s = cache_s
        self._clock = clock
        self._counting = Lock()
        self._lock = Lock()
        self._counted: Load | None = None
        self._valid_until = -math.inf
        self._accepted = dict.fromkeys(Priority, OpenWork())

    def load(self) -> Load:
        """Return what there is to do; one caller counts it anew, the others take what is known.

        Raises:
            DatabaseError: it was never counted, and the database cannot be asked.
        """
        is_first = self._counted is None
        is_due = is_first or self._clock() >= self._valid_until
        # Whoever finds somebody counting takes the last count, and waits only for the first one.
        if is_due and self._counting.acquire(blocking=is_first):
            try:
                self._count_when_due()
            finally:
                self._counting.release()
        with self._lock:
            counted = self._counted
            accepted = dict(self._accepted)
        assert counted is not None  # noqa: S101 - who comes first counts or fails, for the type checker
        return replace(
            counted, open={each: _sum(counted.open[each], accepted[each]) for each in Priority}
        )

    def require_room(self, priority: Priority | None) -> None:
        """Refuse work of a priority that is full; None, where it is not known yet: if all are.

        Raises:
            ApiError: no room; says after which time there may be some.
            DatabaseError: the database cannot be asked.
        """
        load = self.load()
        asked = list(Priority) if priority is None else [priority]
        if all(self.limits[each].are_reached_by(load.open[each]) for each in asked):
            retry_after_s = min(self._seconds_to_room(load, each) for each in asked)
            raise ApiError("system_full", headers={"Retry-After": str(retry_after_s)})

    def note_accepted(self, document: Document) -> None:
        """Add a document that was let in to what was counted before it."""
        priority = Priority(document.priority)
        added = OpenWork(1, document.page_estimate, document.pixel_estimate, 0.0)
        with self._lock:
            self._accepted[priority] = _sum(self._accepted[priority], added)

    def refusal_of(self, use: KeyUse) -> ApiError:
        """Return the answer to a key that has used up a quota; asks nobody."""
        if use.has_used_up_today:
            detail = (
                f"This key has sent {use.pages_today:,} pages today (UTC), and may send "
                f"{use.max_pages_per_day:,}. {_ESTIMATED} Send the document tomorrow, or {_RAISE}"
            )
            retry_after_s = seconds_to_midnight(time.time())
        else:
            detail = (
                f"This key has {use.open_pages or 0:,} pages open, and may have "
                f"{use.max_open_pages:,}. {_ESTIMATED} Send the document when some are done, or "
                f"{_RAISE}"
            )
            over = (use.open_pages or 0) - (use.max_open_pages or 0)
            counted = self._counted
            retry_after_s = _seconds_for(over + 1, counted.pages_per_s if counted else 0.0)
        return ApiError(
            "quota_exceeded", detail=detail, headers={"Retry-After": str(retry_after_s)}
        )

    def _seconds_to_room(self, load: Load, priority: Priority) -> int:
        work, limits = load.open[priority], self.limits[priority]
        pixels_per_page = work.pixels / work.pages if work.pages else 1
        over = max(
            work.pages - limits.pages, (work.pixels - limits.pixels) / max(pixels_per_page, 1)
        )
        return _seconds_for(over + 1, load.pages_per_s)

    def _count_when_due(self) -> None:
        began = self._clock()
        if began < self._valid_until:
            return  # somebody else has, while this one waited
        with self._lock:
            included = dict(self._accepted)
        try:
            counted = self._count()
        except DatabaseUnavailableError:
            # Counting may fail where accepting does not, as when so much is open that it takes too
            # long: an older count with what was accepted since is better than to refuse everybody.
            if self._counted is None:
                raise
            self._use_until_next(began)
            log.warning("open work not counted, an older count is used")
            return
        with self._lock:
            self._counted = counted
            # What was accepted while it was counted may be counted twice, until the next time.
            self._accepted = {
                each: _difference(self._accepted[each], included[each]) for each in Priority
            }
        self._use_until_next(began)

    def _use_until_next(self, began: float) -> None:
        now = self._clock()
        self._valid_until = now + max(self._cache_s, _SHARE_OF_COUNTING * (now - began))


def seconds_to_midnight(now_s: float) -> int:
    """Return how long the day (UTC) still is at a time in seconds since 1970: at least 1."""
    return math.ceil(86_400 - now_s % 86_400)


def _seconds_for(pages: float, pages_per_s: float) -> int:
    if pages_per_s <= 0:
        return _UNKNOWN_RATE_RETRY_S
    return round(min(max(pages / pages_per_s, MIN_RETRY_S), MAX_RETRY_S))


def _sum(work: OpenWork, more: OpenWork) -> OpenWork:
    return OpenWork(
        work.documents + more.documents,
        work.pages + more.pages,
        work.pixels + more.pixels,
        more.oldest_s if work.oldest_s is None else work.oldest_s,
    )


def _difference(work: OpenWork, less: OpenWork) -> OpenWork:
    return OpenWork(
        work.documents - less.documents,
        work.pages - less.pages,
        work.pixels - less.pixels,
        work.oldest_s if work.documents > less.documents else None,
    )
