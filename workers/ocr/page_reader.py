"""Pages in, results out: each page on its route, through the engine or past it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from workers.ocr.mixed_page import masked_crop, merge_recognized
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.rendered_page import RenderedPage
from workers.ocr.result import PageResult, StageSeconds


class Engine(Protocol):
    """What recognizes pages; ``workers.ocr.engine.OcrEngine``."""

    @property
    def model_version(self) -> str: ...

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]: ...


class PageReader:
    """Sends pages on their routes; what needs no recognition costs the engine nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def model_version(self) -> str:
        """See ``OcrEngine.model_version``."""
        return self._engine.model_version

    def read_pages(
        self, pages: Iterable[RenderedPage | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        """Read pages.

        Args:
            pages: drawn one by one; no two of the same index are under way at a time.

        Yields:
            For each page, in the order given, its result or its failure.

        Errors of ``OcrEngine.read_pages`` pass through.
        """
        under_way: dict[int, RenderedPage] = {}
        for outcome in self._engine.read_pages(_sent_on(pages, under_way)):
            page = under_way.pop(outcome.page_index, None)
            if page is None or isinstance(outcome, PageFailure):
                yield outcome
            elif page.decision.route == "mixed":
                yield merge_recognized(page, outcome)
            else:
                yield replace(outcome, route="ocr", route_reason=page.decision.reason)


def _sent_on(
    pages: Iterable[RenderedPage | PageFailure], under_way: dict[int, RenderedPage]
) -> Iterator[PageImage | PageResult | PageFailure]:
    for page in pages:
        if isinstance(page, PageFailure):
            yield page
        elif page.decision.route == "ocr":
            # Without its pixels, which the engine gives back before the page is done.
            under_way[page.page_index] = replace(page, pixels=None)
            yield page.image
        elif page.decision.route == "mixed":
            under_way[page.page_index] = replace(page, pixels=None)
            yield masked_crop(page)
        else:
            yield _stated_page(page)


def _stated_page(page: RenderedPage) -> PageResult:
    """Make the result of a page that was not recognized: its layer, or nothing on a blank one."""
    return PageResult(
        page_index=page.page_index,
        width_px=page.width_px,
        height_px=page.height_px,
        dpi=page.dpi,
        rotation_deg=page.rotation_deg,
        skew_deg=0.0,
        crops_found=0,
        crops_kept=0,
        lines=page.layer.lines,
        blocks=page.layer.blocks,
        seconds=StageSeconds(render=page.render_s),
        route=page.decision.route,
        route_reason=page.decision.reason,
    )
