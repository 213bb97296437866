"""The OCR engine: page images in, page results out, in the same order."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workers.ocr.bundle import ModelBundle
from workers.ocr.crops import cut_crop, reading_quads, select_detections
from workers.ocr.detection import Detector
from workers.ocr.errors import InferenceError, PoisonedContextError
from workers.ocr.inference import Device, DeviceMemory, OnnxSession, Session
from workers.ocr.memory_ladder import LadderSession
from workers.ocr.page_assembly import PendingLine, PendingPage, page_failure
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.pipeline import PagePipeline, PipelineLimits
from workers.ocr.recognition import RecognitionLimits, Recognizer
from workers.ocr.result import PageResult
from workers.ocr.watchdog import Watchdog, WatchedSession
from workers.ocr.width_buckets import CPU_BUCKETS_PX, CUDA_BUCKETS_PX

# On a CPU the arithmetic is the limit: measured on two cores, one thread, 1, 2, 4 and 8 crops of
# 480 px together take 27, 29, 29 and 30 ms a crop. And onnxruntime's last bits differ between
# minibatch sizes (up to 1.4e-6), so one size also keeps confidences the same to the byte.
_CPU_MINIBATCH_CROPS: Final = 1
# Recognition waits for this many pages, or this many bytes of crops, whichever comes first. A
# CPU gains nothing from waiting.
_CUDA_WINDOW_PAGES: Final = 16
_WINDOW_BYTES: Final = 64 << 20
# Of a slot's GPU memory. The largest input of detection, 1600 x 1600, holds about 1.5 GB of
# activations; the largest minibatch of recognition, 262,144 columns, 2.5 GB in its last layer
# alone, twice.
_DETECTION_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What an operator may set; only ``max_crops`` and ``device`` can change a result.

    Attributes:
        rec_chunk_size: crops that go through the recognizer together at most, 1 to 256.
        max_minibatch_px_columns: crops times padded width of one minibatch at most.
        max_crops: text lines that are recognized on one page at most.
        threads: CPU cores that may be used at once; each works on a page or crop of its own.
        device: where the models run.
        inference_timeout_s: for one run of a model; past it the process ends itself.
        gpu_memory_bytes: what the card has; None when unknown, for no limit either.
        slot_memory_bytes: this slot's share of it, for both models together.
        cache_dir: for graphs that were prepared for a device; None for no cache.
    """

    rec_chunk_size: int = 256
    max_minibatch_px_columns: int = 262_144
    max_crops: int = 2_000
    threads: int = 1
    device: Device = "cpu"
    inference_timeout_s: float = 120.0
    gpu_memory_bytes: int | None = None
    slot_memory_bytes: int | None = None
    cache_dir: Path | None = None


class OcrEngine:
    """Models on one device. One thread at a time may use it."""

    def __init__(
        self,
        bundle: ModelBundle,
        options: EngineOptions | None = None,
        *,
        sessions: tuple[Session, Session] | None = None,
    ) -> None:
        """Load the models.

        Args:
            bundle: files that were checked.
            options: None for the defaults.
            sessions: detection and recognition of another runtime; None for onnxruntime.

        ``ProviderUnavailableError`` and the other errors of ``OnnxSession`` pass through.
        """
        self._options = options or EngineOptions()
        self._bundle = bundle
        watchdog = Watchdog(self._options.inference_timeout_s)
        detection, recognition = (
            WatchedSession(session, watchdog)
            for session in sessions or _open_sessions(bundle, self._options)
        )
        manifest = bundle.manifest
        is_cpu = self._options.device == "cpu"
        self._pipeline_limits = _pipeline_limits(self._options)
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

    @property
    def model_version(self) -> str:
        """Name and hash of the models and their thresholds; equal results come from equal ones."""
        return self._bundle.model_version

    def warm_up(self) -> None:
        """Run both models once, so that readiness means ready."""
        self._detector.warm_up()
        self._recognizer.warm_up()

    def read_pages(
        self, pages: Iterable[PageImage | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        """Recognize pages, with a bounded number of them under way at once.

        Detection, recognition and whatever draws the next page overlap. A page that cannot be
        read becomes a failure of that page; failures that come in go out as they are. Closing
        the iterator stops its threads after their present inference.

        Args:
            pages: page images, and failures of pages that could not be had; drawn one by one,
                in the caller's thread.

        Yields:
            For each page, in the order given, its result or its failure.

        A ``PoisonedContextError`` passes through: this process must end.
        """
        with PagePipeline(self._detect, self._recognizer, self._pipeline_limits) as pipeline:
            for page in pages:
                pipeline.add(page)
                while pipeline.has_outcome:
                    yield pipeline.take()
            while not pipeline.is_empty:
                yield pipeline.take()

    def _detect(self, page: PageImage) -> PendingPage | PageFailure:
        """Find and cut the lines of one page.

        Raises:
            PoisonedContextError: this process must end.
        """
        started = time.perf_counter()
        try:
            detections = self._detector.detect(page.pixels)
        except PoisonedContextError:
            raise
        except InferenceError as exc:
            return page_failure(page.page_index, exc)
        selection = select_detections(detections, self._options.max_crops)
        height_px = self._bundle.manifest.recognition.crop_height_px
        lines = tuple(
            PendingLine(
                detection,
                tuple(
                    cut_crop(page.pixels, quad, height_px) for quad in reading_quads(detection.quad)
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


def _open_sessions(bundle: ModelBundle, options: EngineOptions) -> tuple[Session, Session]:
    return (
        LadderSession(
            lambda: OnnxSession(
                bundle.detection_path,
                device=options.device,
                memory=_memory(options, _DETECTION_SHARE),
                cache_dir=options.cache_dir,
            )
        ),
        LadderSession(
            lambda: OnnxSession(
                bundle.recognition_path,
                device=options.device,
                memory=_memory(options, 1 - _DETECTION_SHARE),
                # A GPU would copy 9,000 times as much for the CPU to look through. On a CPU
                # numpy's argmax is faster than the runtime's, by 4 % of recognition.
                preparation="best_class" if options.device == "cuda" else "plain",
                cache_dir=options.cache_dir,
            )
        ),
    )


def _memory(options: EngineOptions, share: float) -> DeviceMemory | None:
    """Return a model's part of the slot's memory."""
    if options.gpu_memory_bytes is None or options.slot_memory_bytes is None:
        return None
    return DeviceMemory(options.gpu_memory_bytes, int(options.slot_memory_bytes * share))
