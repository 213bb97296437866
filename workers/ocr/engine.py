"""The OCR engine: page images in, page results out, in the same order."""

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import cv2

from workers.ocr.bundle import ModelBundle
from workers.ocr.crop_cache import CacheCounts
from workers.ocr.crops import (
    cut_crop,
    limited_readings,
    reading_quads,
    run_downwards,
    select_detections,
)
from workers.ocr.detection import Detection
from workers.ocr.direct_line import DIRECT_SCORE, direct_quad
from workers.ocr.engine_models import brought_models, open_models
from workers.ocr.engine_observer import EngineObserver
from workers.ocr.engine_options import EngineOptions
from workers.ocr.errors import InferenceError, PoisonedContextError
from workers.ocr.heap import give_back_freed
from workers.ocr.inference import Session
from workers.ocr.orientation import OrientationClassifier
from workers.ocr.page_assembly import FindLines, PendingLine, PendingPage, page_failure
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.pipeline import PagePipeline, PipelineLimits
from workers.ocr.result import PageResult
from workers.ocr.upright import PageUprighter, UprightPage

__all__ = ["EngineOptions", "OcrEngine"]

log = logging.getLogger(__name__)

# Recognition waits for this many pages, or this many bytes of crops, whichever comes first. A
# CPU gains nothing from waiting.
_CUDA_WINDOW_PAGES: Final = 16
_WINDOW_BYTES: Final = 64 << 20
# An arena keeps the most that any moment needed, and more of it the more often pages of different
# sizes meet: over 2,000 pages it grew by a tenth. Given back so often, it costs a page 1 % of CPU.
_CPU_PAGES_TO_SHRINK: Final = 64


class OcrEngine:
    """Models on one device. One thread at a time may use it."""

    def __init__(
        self,
        bundle: ModelBundle,
        options: EngineOptions | None = None,
        *,
        sessions: tuple[Session, Session] | None = None,
        orientation: Session | None = None,
        observer: EngineObserver | None = None,
    ) -> None:
        """Load the models.

        Args:
            bundle: files that were checked.
            options: None for the defaults.
            sessions: detection and recognition of another runtime; None for the one that the
                options name.
            orientation: of another runtime; without it, pages of other ``sessions`` stay as they
                are.
            observer: is told of the work, by any thread; None: nobody is.

        The errors of ``engine_models.open_models`` pass through.
        """
        self._options = options or EngineOptions()
        self._bundle = bundle
        self._pipeline_limits = _pipeline_limits(self._options)
        # The pipeline's threads are all that the cores can take.
        cv2.setNumThreads(1)
        models = (
            open_models(bundle, self._options, observer)
            if sessions is None
            else brought_models(bundle, self._options, sessions, orientation, observer)
        )
        self._detector = models.detector
        self._recognizer = models.recognizer
        self._cache = models.cache
        self._watchdog = models.watchdog
        # On a GPU the arena is sized by the warm-up, and giving it back stops the device.
        self._shrinkable = models.shrinkable if self._options.device == "cpu" else ()
        self._pages_since_shrinking = 0
        self._arithmetic = models.arithmetic
        self._uprighter = (
            None if models.orientation is None else self._make_uprighter(models.orientation)
        )

    @property
    def model_version(self) -> str:
        """Name and hash of the models and their thresholds, and the arithmetic where it differs.

        Equal results come from equal ones.
        """
        suffix = "" if self._arithmetic is None else self._arithmetic.version_suffix
        return self._bundle.model_version + suffix

    @property
    def crop_cache_counts(self) -> CacheCounts:
        """How many crops were read already, of all that were asked for."""
        return self._cache.counts

    def warm_up(self) -> None:
        """Run all models once, so that readiness means ready, and hold no more than they need."""
        self._detector.warm_up()
        self._recognizer.warm_up()
        if self._uprighter is not None:
            self._uprighter.warm_up()
        self._shrink()

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        """Recognize pages, with a bounded number of them under way at once.

        Detection, recognition and whatever draws the next page overlap. A page that cannot be
        read becomes a failure of that page; results and failures that come in go out as they are,
        in their place. Closing the iterator stops its threads after their present inference.

        Args:
            pages: page images, pages that need no recognition, and failures of pages that could
                not be had; drawn one by one, in the caller's thread.

        Yields:
            For each page, in the order given, its result or its failure.

        A ``PoisonedContextError`` passes through: this process must end.
        """
        with PagePipeline(self._detect, self._recognizer, self._pipeline_limits) as pipeline:
            for page in pages:
                pipeline.add(page)
                while pipeline.has_outcome:
                    yield self._named(pipeline.take())
                    self._shrink_now_and_then()
            while not pipeline.is_empty:
                yield self._named(pipeline.take())
                self._shrink_now_and_then()

    def _shrink_now_and_then(self) -> None:
        """Let the runtime give back what it only keeps, once in so many pages.

        Raises:
            PoisonedContextError: this process must end.
        """
        self._pages_since_shrinking += 1
        if self._pages_since_shrinking >= _CPU_PAGES_TO_SHRINK:
            self._pages_since_shrinking = 0
            self._shrink()

    def _shrink(self) -> None:
        """Let the runtime and the heap give back what they only keep.

        Raises:
            PoisonedContextError: this process must end.
        """
        for session in self._shrinkable:
            try:
                with self._watchdog.watching():
                    session.shrink()
            except PoisonedContextError:
                raise
            except InferenceError:
                log.warning("memory was not given back", exc_info=True)
        give_back_freed()

    def _named(self, outcome: PageResult | PageFailure) -> PageResult | PageFailure:
        """Say in a result what computed it."""
        if isinstance(outcome, PageFailure) or outcome.crops_found == 0 or self._arithmetic is None:
            return outcome
        return replace(
            outcome, engine=self._arithmetic.engine, precision=self._arithmetic.precision
        )

    def _detect(self, page: PageImage) -> PendingPage | PageFailure:
        """Cut the only line of a low page, and find and cut the lines of any other.

        A ``PoisonedContextError`` passes through.
        """
        started = time.perf_counter()
        quad = direct_quad(page.pixels)
        if quad is None:
            return self._detect_lines(page)
        height_px = self._bundle.manifest.recognition.crop_height_px
        crop = cut_crop(page.pixels, quad, height_px)
        return _pending_page(
            page,
            found_count=1,
            lines=(PendingLine(Detection(quad, DIRECT_SCORE), (crop,)),),
            detect_s=time.perf_counter() - started,
            find_lines=partial(self._detect_lines, page),
        )

    def _detect_lines(self, page: PageImage) -> PendingPage | PageFailure:
        """Find and cut the lines of one page.

        Raises:
            PoisonedContextError: this process must end.
        """
        started = time.perf_counter()
        try:
            upright = self._find_lines(page)
        except PoisonedContextError:
            raise
        except InferenceError as exc:
            return page_failure(page.page_index, exc)
        page = upright.page
        selection = select_detections(upright.detections, self._options.max_crops)
        height_px = self._bundle.manifest.recognition.crop_height_px
        downward = run_downwards([detection.quad for detection in selection.kept])
        readings = limited_readings(
            [reading_quads(each.quad, among_downward=downward) for each in selection.kept],
            self._options.max_crops,
        )
        lines = tuple(
            PendingLine(detection, tuple(cut_crop(page.pixels, quad, height_px) for quad in quads))
            for detection, quads in zip(selection.kept, readings, strict=True)
        )
        return _pending_page(
            page,
            found_count=selection.found_count,
            lines=lines,
            detect_s=time.perf_counter() - started,
        )

    def _find_lines(self, page: PageImage) -> UprightPage:
        if self._uprighter is not None:
            return self._uprighter.find_lines(page)
        return UprightPage(page, tuple(self._detector.detect(page.pixels)))

    def _make_uprighter(self, orientation: Session) -> PageUprighter | None:
        model = self._bundle.manifest.orientation
        if model is None:
            return None
        return PageUprighter(
            self._detector.detect,
            OrientationClassifier(orientation, model),
            self._recognizer.recognize,
            self._bundle.manifest.recognition.crop_height_px,
        )


def _pending_page(
    page: PageImage,
    *,
    found_count: int,
    lines: tuple[PendingLine, ...],
    detect_s: float,
    find_lines: FindLines | None = None,
) -> PendingPage:
    return PendingPage(
        page_index=page.page_index,
        width_px=page.width_px,
        height_px=page.height_px,
        dpi=page.dpi,
        rotation_deg=page.rotation_deg,
        crops_found=found_count,
        lines=lines,
        render_s=page.render_s,
        detect_s=detect_s,
        find_lines=find_lines,
    )


def _pipeline_limits(options: EngineOptions) -> PipelineLimits:
    if options.device == "cpu":
        return PipelineLimits(
            threads=options.threads,
            is_shared=True,
            window_pages=1,
            window_bytes=_WINDOW_BYTES,
            pages_under_way=options.threads + 2,
            pages_undetected=options.threads,
        )
    return PipelineLimits(
        threads=1,
        is_shared=False,
        window_pages=_CUDA_WINDOW_PAGES,
        window_bytes=_WINDOW_BYTES,
        pages_under_way=2 * _CUDA_WINDOW_PAGES,
        pages_undetected=2,
    )
