"""Engines that need no models: they read every page at once, or fail in one way each."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from workers.ocr.geometry import Box, Quad
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.result import Block, PageResult, TextLine, Word


class NumberingEngine:
    """Reads "page <number>" from every page, whatever is on it."""

    model_version = "numbering@11111111"

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        for page in pages:
            yield number_page(page) if isinstance(page, PageImage) else page


class RememberingEngine(NumberingEngine):
    """Reads likewise; ``page_indexes`` are those of the pages that it was given."""

    def __init__(self, model_version: str = NumberingEngine.model_version) -> None:
        self.model_version = model_version
        self.page_indexes: list[int] = []

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        for page in super().read_pages(pages):
            self.page_indexes.append(page.page_index)
            yield page


Degrade = Callable[[PageResult], PageResult | PageFailure]

DEGRADATIONS: dict[str, Degrade] = {
    "failed": lambda page: PageFailure(page.page_index, "page_timeout", "It took too long."),
    "reduced": lambda page: replace(page, warnings=("reduced_resolution",)),
    "truncated": lambda page: replace(page, crops_found=2_001),
}
"""What makes a result worse than another reading of its page might be."""


class DegradingEngine(RememberingEngine):
    """Does something to the third page that it reads of a document, once."""

    def __init__(self, degrade: Degrade) -> None:
        super().__init__()
        self._degrade = degrade
        self._is_done = False

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        for page in super().read_pages(pages):
            if self._is_done or page.page_index != 2:
                yield page
                continue
            self._is_done = True
            assert isinstance(page, PageResult)
            yield self._degrade(page)


class ForgetfulEngine:
    """Loses the first page that it is given."""

    model_version = "forgetful@11111111"

    def read_pages(
        self, pages: Iterable[PageImage | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        yield from list(NumberingEngine().read_pages(pages))[1:]


class FailingEngine:
    """Reads so many pages and then raises."""

    model_version = "failing@11111111"

    def __init__(self, error: Exception, *, after_pages: int = 0) -> None:
        self._error = error
        self._after_pages = after_pages

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        for count, page in enumerate(pages):
            if count == self._after_pages:
                raise self._error
            yield number_page(page) if isinstance(page, PageImage) else page


class ProcessDeathError(BaseException):
    """Ends whatever runs, as the death of the process does: nothing can be recorded any more."""


class PoisonedEngine:
    """Does something bad at one page of a document, and reads all others."""

    model_version = "numbering@11111111"

    def __init__(self, page_index: int, do_harm: Callable[[PageImage], None]) -> None:
        self._page_index = page_index
        self._do_harm = do_harm

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        for page in pages:
            if not isinstance(page, PageImage):
                yield page
                continue
            if page.page_index == self._page_index:
                self._do_harm(page)
            yield number_page(page)


def number_page(page: PageImage) -> PageResult:
    """Return a result with one line that names the page."""
    text = f"page {page.page_index + 1}"
    corners = np.array([[1, 1], [9, 1], [9, 5], [1, 5]], dtype=np.float32)
    line = TextLine(text, Quad(corners), 0.9, 0.8, (Word(text, Box(1, 1, 9, 5)),))
    return PageResult(
        page_index=page.page_index,
        width_px=page.width_px,
        height_px=page.height_px,
        dpi=page.dpi,
        rotation_deg=page.rotation_deg,
        skew_deg=0.0,
        crops_found=1,
        crops_kept=1,
        lines=(line,),
        blocks=(Block((0,)),),
    )


class SlowEngine(NumberingEngine):
    """Reads a page in ``page_s`` seconds; ``pages_read`` counts, ``is_reading`` is set by then."""

    def __init__(self, *, page_s: float) -> None:
        self._page_s = page_s
        self.pages_read = 0
        self.is_reading = threading.Event()

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        for page in super().read_pages(pages):
            self.is_reading.set()
            threading.Event().wait(self._page_s)
            self.pages_read += 1
            yield page
