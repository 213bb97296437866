"""Pages through detection and recognition at once, in order, with a bounded number under way.

The caller's thread draws pages and takes outcomes; other threads detect and recognize. On a CPU
they are as many as the cores and do both, each with single-thread inference, which is where the
arithmetic is cheapest. On a GPU one thread owns each of the two sessions. No outcome depends on
how calls fall to threads: a page's lines and each line's padded width are its own.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from workers.ocr.page_assembly import FindLines, PendingPage, detection_still_due, page_outcome
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.recognition import Minibatch, Reading, RecognitionPlan, Recognizer
from workers.ocr.result import PageResult
from workers.ocr.work_threads import WorkThreads

# Pages of a window are detected before crops are recognized: at a document's end every thread
# then finds crops to read instead of waiting for one thread's last detection.
_DETECT, _RECOGNIZE = 0, 1
# A page that was read in vain is looked at before all others, which may wait for its outcome.
_AGAIN = (_DETECT, 0)


@dataclass(frozen=True, slots=True)
class PipelineLimits:
    """How much is under way at once; none of it changes a result.

    Attributes:
        threads: that detect and recognize.
        is_shared: every thread does both; else one thread each, whatever ``threads`` says.
        window_pages: whose lines are recognized together, unless their crops are too many.
        window_bytes: of crops, after which a window is complete.
        pages_under_way: drawn and not yet taken, positive.
        pages_undetected: drawn and not yet detected, positive; their pixels are in memory.
    """

    threads: int
    is_shared: bool
    window_pages: int
    window_bytes: int
    pages_under_way: int
    pages_undetected: int


class Detect(Protocol):
    """Finds and cuts the lines of one page, or says why it cannot."""

    def __call__(self, page: PageImage, /) -> PendingPage | PageFailure: ...


@dataclass(eq=False, slots=True)
class _Place:
    """A page's place in the order; ``outcome`` is None while it is under way."""

    outcome: PageResult | PageFailure | None = None


class _Window:
    """Pages whose lines are recognized together."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pages: list[tuple[_Place, PendingPage]] = []
        self.crop_bytes = 0
        self.seconds = 0.0
        self.unread_count = 0

    def add(self, place: _Place, page: PendingPage) -> None:
        self.pages.append((place, page))
        self.crop_bytes += sum(crop.pixels.nbytes for crop in page.crops)


class PagePipeline:
    """One run over pages; a context manager, whose end stops the threads."""

    def __init__(self, detect: Detect, recognizer: Recognizer, limits: PipelineLimits) -> None:
        self._detect = detect
        self._recognizer = recognizer
        self._limits = limits
        self._changed = threading.Condition()
        self._places: deque[_Place] = deque()
        self._page_count = 0
        self._undetected_count = 0
        self._window = _Window(0)
        self._error: BaseException | None = None
        if limits.is_shared:
            self._detect_threads = WorkThreads(limits.threads, on_error=self._fail)
            self._recognize_threads = self._detect_threads
        else:
            self._detect_threads = WorkThreads(1, on_error=self._fail)
            self._recognize_threads = WorkThreads(1, on_error=self._fail)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._detect_threads.close()
        self._recognize_threads.close()

    @property
    def is_empty(self) -> bool:
        """Whether every page that was added has been taken."""
        return not self._places

    @property
    def has_outcome(self) -> bool:
        """Whether the next outcome is ready, or must be taken before another page is added."""
        with self._changed:
            return bool(self._places) and (
                self._places[0].outcome is not None
                or len(self._places) >= self._limits.pages_under_way
            )

    def add(self, page: PageImage | PageResult | PageFailure) -> None:
        """Start on a page, or give one that is done its place.

        Waits while too many are not yet detected.

        Raises:
            BaseException: what a thread failed with.
        """
        if not isinstance(page, PageImage):
            self._places.append(_Place(page))
            return
        place = _Place()
        with self._changed:
            self._wait_while(lambda: self._undetected_count >= self._limits.pages_undetected)
            self._places.append(place)
            self._undetected_count += 1
            self._page_count += 1
            urgency = (_DETECT, self._page_count)
        find_lines = partial(self._detect, page)
        self._detect_threads.submit(urgency, partial(self._run_detection, place, find_lines))

    def take(self) -> PageResult | PageFailure:
        """Wait for the outcome of the first page that was not taken yet.

        Raises:
            BaseException: what a thread failed with; a ``PoisonedContextError`` before any
                outcome that is still to come.
        """
        place = self._places[0]
        while (outcome := place.outcome) is None or self._error is not None:
            with self._changed:
                # A window that no further page can complete is recognized as it is.
                self._wait_while(lambda: place.outcome is None and not self._is_window_last)
                window = self._exchange_window() if self._is_window_last else None
            if window is not None:
                self._start_recognition(window)
        self._places.popleft()
        return outcome

    @property
    def _is_window_last(self) -> bool:
        """Whether pages wait in a window, and no other page is on its way to it."""
        return self._undetected_count == 0 and bool(self._window.pages)

    def _wait_while(self, condition: Callable[[], bool]) -> None:
        """Wait under the lock.

        Raises:
            BaseException: what a thread failed with.
        """
        while self._error is None and condition():
            self._changed.wait()
        if self._error is not None:
            raise self._error

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def _run_detection(self, place: _Place, find_lines: FindLines, spent_s: float = 0.0) -> None:
        pending = find_lines()
        window: _Window | None = None
        with self._changed:
            self._undetected_count -= 1
            if isinstance(pending, PageFailure):
                place.outcome = pending
            else:
                self._window.add(place, replace(pending, detect_s=pending.detect_s + spent_s))
                if (
                    len(self._window.pages) >= self._limits.window_pages
                    or self._window.crop_bytes >= self._limits.window_bytes
                ):
                    window = self._exchange_window()
            self._changed.notify_all()
        if window is not None:
            self._start_recognition(window)

    def _exchange_window(self) -> _Window:
        """Take the window, under the lock, and begin another."""
        window, self._window = self._window, _Window(self._window.number + 1)
        return window

    def _start_recognition(self, window: _Window) -> None:
        crops = [crop.pixels for _, page in window.pages for crop in page.crops]
        plan = self._recognizer.plan(crops)
        window.unread_count = len(plan.minibatches)
        if not plan.minibatches:
            self._complete(window, plan)
        for minibatch in plan.minibatches:
            self._recognize_threads.submit(
                (_RECOGNIZE, window.number), partial(self._read, window, plan, minibatch)
            )

    def _read(self, window: _Window, plan: RecognitionPlan, minibatch: Minibatch) -> None:
        started = time.perf_counter()
        readings: list[Reading] = self._recognizer.read(minibatch)
        plan.put(minibatch, readings)
        with self._changed:
            window.seconds += time.perf_counter() - started
            window.unread_count -= 1
            is_last = window.unread_count == 0
        if is_last:
            self._complete(window, plan)

    def _complete(self, window: _Window, plan: RecognitionPlan) -> None:
        """Give each page of a window its own lines; time is shared out by width.

        A page that was read without detection, and in vain, goes through it now.
        """
        readings = self._recognizer.lines(plan)
        columns = sum(crop.pixels.shape[1] for _, page in window.pages for crop in page.crops)
        seconds_per_column = window.seconds / max(columns, 1)
        position = 0
        outcomes: list[tuple[_Place, PageResult | PageFailure]] = []
        due: list[Callable[[], None]] = []
        for place, page in window.pages:
            stop = position + len(page.crops)
            recognize_s = seconds_per_column * sum(crop.pixels.shape[1] for crop in page.crops)
            own = readings[position:stop]
            if find_lines := detection_still_due(page, own):
                spent_s = page.detect_s + recognize_s
                due.append(partial(self._run_detection, place, find_lines, spent_s))
            else:
                outcomes.append((place, page_outcome(page, own, recognize_s)))
            position = stop
        with self._changed:
            # Their pixels are few, so they may pass the limit of pages that are not yet detected.
            self._undetected_count += len(due)
            for place, outcome in outcomes:
                place.outcome = outcome
            self._changed.notify_all()
        for detection in due:
            self._detect_threads.submit(_AGAIN, detection)
