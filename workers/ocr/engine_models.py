"""The detector and recognizer of one engine: which runtime and precision, and the check of both."""

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from workers.ocr import inference_openvino
from workers.ocr.arithmetic_check import check_arithmetic
from workers.ocr.bundle import ModelBundle
from workers.ocr.crop_cache import CropCache
from workers.ocr.detection import CUDA_SIDE_STEP_PX, Detector
from workers.ocr.engine_observer import EngineObserver, NobodyObserves
from workers.ocr.engine_options import EngineName, EngineOptions
from workers.ocr.errors import ArithmeticCheckError, ProviderUnavailableError
from workers.ocr.graph_preparation import Preparation
from workers.ocr.inference import Device, DeviceMemory, OnnxSession, Session
from workers.ocr.inference_openvino import OpenVinoSession, Precision
from workers.ocr.memory_ladder import LadderSession, ShrinkableSession
from workers.ocr.normalization import Normalization
from workers.ocr.recognition import Recognizer
from workers.ocr.recognition_limits import RecognitionLimits
from workers.ocr.watchdog import Watchdog, WatchedSession
from workers.ocr.width_buckets import CPU_BUCKETS_PX, CUDA_BUCKETS_PX

log = logging.getLogger(__name__)

# On a CPU the arithmetic is the limit: measured on two cores, one thread, 1, 2, 4 and 8 crops of
# 480 px together take 27, 29, 29 and 30 ms a crop. And onnxruntime's last bits differ between
# minibatch sizes (up to 1.4e-6), so one size also keeps confidences the same to the byte.
_CPU_MINIBATCH_CROPS: Final = 1
# Of a slot's GPU memory. The largest input of detection, 1600 x 1600, holds about 1.5 GB of
# activations; the largest minibatch of recognition, 262,144 columns, 2.5 GB in its last layer
# alone, twice.
_DETECTION_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What computes: two of them may differ in the last digits, and rarely in a text."""

    engine: EngineName
    precision: Precision

    @property
    def version_suffix(self) -> str:
        """What a model version ends with; nothing for the arithmetic of reference."""
        return "" if self == _REFERENCE else f"+{self.engine}-{self.precision}"


_REFERENCE: Final = Arithmetic("onnxruntime", "fp32")


@dataclass(frozen=True, slots=True)
class EngineModels:
    """The models, ready to run.

    Attributes:
        detector: on its session.
        recognizer: likewise.
        orientation: of pages, None to leave them as they are.
        cache: of the recognizer.
        watchdog: over every run of these.
        shrinkable: sessions among them that can give memory back.
        arithmetic: None for sessions that somebody brought.
    """

    detector: Detector
    recognizer: Recognizer
    orientation: Session | None
    cache: CropCache
    watchdog: Watchdog
    shrinkable: tuple[ShrinkableSession, ...]
    arithmetic: Arithmetic | None


def open_models(
    bundle: ModelBundle, options: EngineOptions, observer: EngineObserver | None = None
) -> EngineModels:
    """Load both models on the chosen engine, with the fastest arithmetic that reads a known page.

    A precision that fails the check is refused, and the next one is tried, which is logged. The
    last has nothing to fall back to: whether its models can read is for ``golden`` to say.

    A manifest with another ``step_px`` than its recognizer is a ``ModelFileError``. The errors of
    ``OnnxSession`` and ``OpenVinoSession`` pass through.
    """
    *lower, last = _candidates(options)
    for arithmetic in lower:
        models = _open(bundle, options, arithmetic, observer or NobodyObserves())
        try:
            _check(models, bundle)
        except ArithmeticCheckError as exc:
            log.warning(
                "precision refused",
                extra={
                    "engine": arithmetic.engine,
                    "precision": arithmetic.precision,
                    "reason": str(exc),
                },
            )
            continue
        return models
    return _open(bundle, options, last, observer or NobodyObserves())


def brought_models(
    bundle: ModelBundle,
    options: EngineOptions,
    sessions: tuple[Session, Session],
    orientation: Session | None,
    observer: EngineObserver | None = None,
) -> EngineModels:
    """Put sessions of another runtime into both models.

    Args:
        bundle: what they run.
        options: of the engine.
        sessions: detection and recognition.
        orientation: of pages, None to leave them as they are.
        observer: is told of their work; None: nobody is.
    """
    observer = observer or NobodyObserves()
    cache = CropCache(options.crop_cache_count)
    watchdog = Watchdog(options.inference_timeout_s, before_end=observer.hung)
    detection, recognition = (WatchedSession(session, watchdog) for session in sessions)
    is_cpu = options.device == "cpu"
    return EngineModels(
        Detector(
            detection,
            bundle.manifest.detection,
            side_step_px=None if is_cpu else CUDA_SIDE_STEP_PX,
        ),
        Recognizer(
            recognition,
            bundle.manifest.recognition,
            bundle.charset,
            RecognitionLimits(
                rec_chunk_size=_CPU_MINIBATCH_CROPS if is_cpu else options.rec_chunk_size,
                max_minibatch_px_columns=options.max_minibatch_px_columns,
                buckets_px=CPU_BUCKETS_PX if is_cpu else CUDA_BUCKETS_PX,
                has_few_counts=not is_cpu,
            ),
            cache,
            observer,
        ),
        orientation=None if orientation is None else WatchedSession(orientation, watchdog),
        cache=cache,
        watchdog=watchdog,
        shrinkable=tuple(each for each in sessions if isinstance(each, ShrinkableSession)),
        arithmetic=None,
    )


def detection_preparation(bundle: ModelBundle) -> Preparation:
    """Return what the detector's graph does under onnxruntime."""
    return Preparation(bundle.manifest.detection.normalization)


def recognition_preparation(bundle: ModelBundle, device: Device) -> Preparation:
    """Return what the recognizer's graph does under onnxruntime.

    A GPU would copy 9,000 times as much for the CPU to look through. On a CPU numpy's argmax is
    faster than the runtime's, by 4 % of recognition.
    """
    return Preparation(
        bundle.manifest.recognition.normalization,
        has_padding=True,
        chooses_best_class=device == "cuda",
    )


def _candidates(options: EngineOptions) -> tuple[Arithmetic, ...]:
    """Return what is tried, the fastest first.

    Raises:
        ProviderUnavailableError: the engine does not run on the device.
    """
    if options.engine == "openvino" and options.device == "cuda":
        raise ProviderUnavailableError(
            "OpenVINO runs on the CPU only; set PAGEFLEET_DEVICE=cpu, or PAGEFLEET_ENGINE=auto"
        )
    if options.engine == "openvino":
        fp32 = Arithmetic("openvino", "fp32")
        return (Arithmetic("openvino", "bf16"), fp32) if _has_bfloat16() else (fp32,)
    # Beside CUDA the other runtime's threads would take the cores that feed the GPU.
    is_considered = options.engine == "auto" and options.device == "cpu"
    if is_considered and inference_openvino.is_installed() and _has_bfloat16():
        return (Arithmetic("openvino", "bf16"), _REFERENCE)
    return (_REFERENCE,)


def _has_bfloat16() -> bool:
    return inference_openvino.has_bfloat16()


def _open(
    bundle: ModelBundle, options: EngineOptions, arithmetic: Arithmetic, observer: EngineObserver
) -> EngineModels:
    if arithmetic.engine == "openvino":
        openers = [
            # Every page may have a size of its own, crops have the few widths of their buckets.
            partial(
                _open_openvino,
                bundle.detection_path,
                bundle.manifest.detection.normalization,
                options,
                arithmetic.precision,
                keeps_shapes=False,
            ),
            partial(
                _open_openvino,
                bundle.recognition_path,
                bundle.manifest.recognition.normalization,
                options,
                arithmetic.precision,
                keeps_shapes=True,
            ),
        ]
    else:
        openers = [
            partial(
                _open_onnx,
                bundle.detection_path,
                detection_preparation(bundle),
                options,
                _DETECTION_SHARE,
            ),
            partial(
                _open_onnx,
                bundle.recognition_path,
                recognition_preparation(bundle, options.device),
                options,
                1 - _DETECTION_SHARE,
            ),
        ]
    detection, recognition = (
        LadderSession(opener, on_out_of_memory=observer.ran_out_of_memory) for opener in openers
    )
    models = brought_models(
        bundle,
        options,
        (detection, recognition),
        _open_orientation(bundle, options, observer),
        observer,
    )
    models.recognizer.check_step()
    return replace(models, arithmetic=arithmetic)


def _open_orientation(
    bundle: ModelBundle, options: EngineOptions, observer: EngineObserver
) -> Session | None:
    """Open the small model, which decides much, with the arithmetic of reference."""
    path, model = bundle.orientation_path, bundle.manifest.orientation
    if path is None or model is None:
        return None
    preparation = Preparation(model.normalization)
    return LadderSession(
        lambda: OnnxSession(path, preparation, device=options.device, cache_dir=options.cache_dir),
        on_out_of_memory=observer.ran_out_of_memory,
    )


def _open_onnx(
    path: Path, preparation: Preparation, options: EngineOptions, share: float
) -> ShrinkableSession:
    return OnnxSession(
        path,
        preparation,
        device=options.device,
        memory=_memory(options, share),
        cache_dir=options.cache_dir,
    )


def _open_openvino(
    path: Path,
    normalization: Normalization,
    options: EngineOptions,
    precision: Precision,
    *,
    keeps_shapes: bool,
) -> ShrinkableSession:
    return OpenVinoSession(
        path,
        normalization,
        precision=precision,
        threads=options.threads,
        keeps_shapes=keeps_shapes,
        cache_dir=options.cache_dir,
    )


def _memory(options: EngineOptions, share: float) -> DeviceMemory | None:
    """Return a model's part of the slot's memory."""
    if options.gpu_memory_bytes is None or options.slot_memory_bytes is None:
        return None
    return DeviceMemory(options.gpu_memory_bytes, int(options.slot_memory_bytes * share))


def _check(models: EngineModels, bundle: ModelBundle) -> None:
    check_arithmetic(
        models.detector,
        models.recognizer,
        crop_height_px=bundle.manifest.recognition.crop_height_px,
        charset=bundle.charset,
    )
