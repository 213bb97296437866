"""The OCR engine: page images in, page results out, in the same order."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from workers.ocr.bundle import ModelBundle
from workers.ocr.crops import cut_crop, reading_quads, run_downwards, select_detections
from workers.ocr.detection import Detector
from workers.ocr.errors import InferenceError, PoisonedContextError
from workers.ocr.inference import Device, OnnxSession, Session
from workers.ocr.orientation import OrientationClassifier
from workers.ocr.page_assembly import PendingLine, PendingPage, page_failure, page_outcome
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.recognition import RecognitionLimits, Recognizer
from workers.ocr.result import PageResult
from workers.ocr.upright import PageUprighter, UprightPage
from workers.ocr.width_buckets import CPU_BUCKETS_PX, CUDA_BUCKETS_PX

# On a CPU the arithmetic is the limit: measured on two cores, one thread, 1, 2, 4 and 8 crops of
# 480 px together take 27, 29, 29 and 30 ms a crop. And onnxruntime's last bits differ between
# minibatch sizes (up to 1.4e-6), so one size also keeps confidences the same to the byte.
_CPU_MINIBATCH_CROPS: Final = 1
# Recognition waits for this many pages, or this many bytes of crops, whichever comes first. A
# CPU gains nothing from waiting.
_CUDA_WINDOW_PAGES: Final = 16
_CPU_WINDOW_PAGES: Final = 1
_WINDOW_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What an operator may set; only ``max_crops`` and ``device`` can change a result.

    Attributes:
        rec_chunk_size: crops that go through the recognizer together at most, 1 to 256.
        max_minibatch_px_columns: crops times padded width of one minibatch at most.
        max_crops: text lines that are recognized on one page at most.
        threads: CPU threads of one inference.
        device: where the models run.
    """

    rec_chunk_size: int = 256
    max_minibatch_px_columns: int = 262_144
    max_crops: int = 2_000
    threads: int = 1
    device: Device = "cpu"


class OcrEngine:
    """Models on one device. One thread at a time may use it."""

    def __init__(
        self,
        bundle: ModelBundle,
        options: EngineOptions | None = None,
        *,
        sessions: tuple[Session, Session] | None = None,
        orientation: Session | None = None,
    ) -> None:
        """Load the models.

        Args:
            bundle: files that were checked.
            options: None for the defaults.
            sessions: detection and recognition of another runtime; None for onnxruntime.
            orientation: of another runtime; without it, pages of other ``sessions`` stay as they
                are.

        ``ProviderUnavailableError`` and the other errors of ``OnnxSession`` pass through.
        """
        self._options = options or EngineOptions()
        self._bundle = bundle
        detection, recognition = sessions or _open_sessions(bundle, self._options)
        manifest = bundle.manifest
        is_cpu = self._options.device == "cpu"
        self._window_pages = _CPU_WINDOW_PAGES if is_cpu else _CUDA_WINDOW_PAGES
        self._detector = Detector(detection, manifest.detection)
        self._recognizer = Recognizer(
            recognition,
            manifest.recognition,
            bundle.charset,
            RecognitionLimits(
                rec_chunk_size=min(self._options.rec_chunk_size, _CPU_MINIBATCH_CROPS)
                if is_cpu
                else self._options.rec_chunk_size,
                max_minibatch_px_columns=self._options.max_minibatch_px_columns,
                buckets_px=CPU_BUCKETS_PX if is_cpu else CUDA_BUCKETS_PX,
            ),
        )

        if sessions is None:
            orientation = _open_orientation(bundle, self._options)
        self._uprighter = None if orientation is None else self._make_uprighter(orientation)

    @property
    def model_version(self) -> str:
        """Name and hash of the models and their thresholds; equal results come from equal ones."""
        return self._bundle.model_version

    def warm_up(self) -> None:
        """Run both models once, so that readiness means ready."""
        self._detector.warm_up()
        self._recognizer.warm_up()
        if self._uprighter is not None:
            self._uprighter.warm_up()

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        """Recognize pages, holding the pixels of one and the crops of a bounded window.

        Lines are recognized across the pages of a window. A page that cannot be read becomes a
        failure of that page; results and failures that come in go out as they are, in their place.

        Args:
            pages: page images, pages that need no recognition, and failures of pages that could
                not be had; drawn one by one.

        Yields:
            For each page, in the order given, its result or its failure.

        A ``PoisonedContextError`` passes through: this process must end.
        """
        window: list[PendingPage | PageResult | PageFailure] = []
        window_bytes = 0
        for page in pages:
            pending = self._detect(page) if isinstance(page, PageImage) else page
            window.append(pending)
            if isinstance(pending, PendingPage):
                window_bytes += sum(crop.pixels.nbytes for crop in pending.crops)
            if len(window) >= self._window_pages or window_bytes >= _WINDOW_BYTES:
                yield from self._recognize(window)
                window, window_bytes = [], 0
        yield from self._recognize(window)

    def _detect(self, page: PageImage) -> PendingPage | PageFailure:
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
        lines = tuple(
            PendingLine(
                detection,
                tuple(
                    cut_crop(page.pixels, quad, height_px)
                    for quad in reading_quads(detection.quad, among_downward=downward)
                ),
            )
            for detection in selection.kept
        )
        return PendingPage(
            page_index=page.page_index,
            width_px=page.width_px,
            height_px=page.height_px,
            dpi=page.dpi,
            rotation_deg=page.rotation_deg,
            crops_found=selection.found_count,
            lines=lines,
            render_s=page.render_s,
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

    def _recognize(
        self, window: Sequence[PendingPage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        """Read the crops of a window together and give each page its own."""
        started = time.perf_counter()
        crops = [crop for page in window if isinstance(page, PendingPage) for crop in page.crops]
        readings = self._recognizer.recognize([crop.pixels for crop in crops])
        # Time is shared out by width, which is what recognition costs.
        columns = sum(crop.pixels.shape[1] for crop in crops)
        seconds_per_column = (time.perf_counter() - started) / max(columns, 1)
        position = 0
        for page in window:
            if not isinstance(page, PendingPage):
                yield page
                continue
            stop = position + len(page.crops)
            recognize_s = seconds_per_column * sum(
                crop.pixels.shape[1] for crop in crops[position:stop]
            )
            yield page_outcome(page, readings[position:stop], recognize_s)
            position = stop


def _open_sessions(bundle: ModelBundle, options: EngineOptions) -> tuple[Session, Session]:
    detection, recognition = (
        OnnxSession(path, device=options.device, threads=options.threads)
        for path in (bundle.detection_path, bundle.recognition_path)
    )
    return detection, recognition


def _open_orientation(bundle: ModelBundle, options: EngineOptions) -> Session | None:
    path = bundle.orientation_path
    if path is None:
        return None
    return OnnxSession(path, device=options.device, threads=options.threads)
