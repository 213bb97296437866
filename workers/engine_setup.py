"""Make the engine and the renderer's limits from settings; a worker and ``pagefleet ocr`` share it.

Apart from ``workers.runtime``, because reading a file needs no database, broker or storage.
"""

from workers.devices import Device, count_cores, gpu_memory_bytes
from workers.ocr.engine import EngineOptions, OcrEngine
from workers.ocr.engine_observer import EngineObserver
from workers.ocr.errors import ModelFileError
from workers.ocr.golden import check_golden
from workers.ocr.heap import give_back_freed
from workers.ocr.profiles import find_profile, open_profile
from workers.page_renderer import RenderLimits
from workers.settings import OcrSettings

_ARENA_SHARE = 0.9


def make_engine(
    settings: OcrSettings,
    device: Device,
    *,
    slots: int = 1,
    observer: EngineObserver | None = None,
) -> OcrEngine:
    """Load the models, make the engine that runs them on ``device``, and see that it can read.

    A ``ModelFileError`` passes through: a file is missing or does not fit, or the golden page was
    misread.

    Args:
        settings: of the process.
        device: of its slot.
        slots: processes that share this machine's cores.
        observer: is told of the engine's work, by any thread; None: nobody is.
    """
    bundle = open_profile(settings.profile, settings.models_dir)
    gpu_bytes = gpu_memory_bytes() if device.kind == "cuda" else None
    engine = OcrEngine(
        bundle,
        EngineOptions(
            device=device.kind,
            engine=settings.engine,
            rec_chunk_size=settings.rec_chunk_size,
            max_minibatch_px_columns=settings.rec_minibatch_px_columns,
            max_crops=settings.max_crops_per_page,
            crop_cache_count=settings.crop_cache_count,
            inference_timeout_s=settings.inference_timeout_s,
            gpu_memory_bytes=gpu_bytes,
            slot_memory_bytes=slot_memory_bytes(
                settings, gpu_bytes=gpu_bytes, slots_per_gpu=-(-slots // max(device.gpu_count, 1))
            ),
            cache_dir=settings.home / "cache",
            threads=slot_threads(settings, slots=slots),
        ),
        observer=observer,
    )
    give_back_freed()  # what loading took, before the first page takes more
    check_golden(engine, bundle)
    return engine


def chosen_bundle(settings: OcrSettings) -> str | None:
    """Return name and hash of the models that the settings choose; None: they are not here."""
    try:
        manifest, _ = find_profile(settings.profile, settings.models_dir)
    except ModelFileError:
        return None
    return manifest.model_version


def slot_threads(settings: OcrSettings, *, slots: int) -> int:
    """Return how many cores one of ``slots`` slots uses: what was set, else its share."""
    return settings.ocr_threads or max(1, count_cores() // slots)


def slot_memory_bytes(
    settings: OcrSettings, *, gpu_bytes: int | None, slots_per_gpu: int
) -> int | None:
    """Return the GPU memory of one slot; None for no limit, where the card's is unknown.

    A tenth of the card is left to what no arena counts: the CUDA context of each process, and
    the workspaces of cuDNN.
    """
    if gpu_bytes is None:
        return None
    return settings.gpu_memory_bytes or int(gpu_bytes * _ARENA_SHARE) // slots_per_gpu


def render_limits(settings: OcrSettings) -> RenderLimits:
    """Return the limits of the render child."""
    return RenderLimits(
        max_pixels=settings.render_max_pixels,
        max_pages=settings.max_pages,
        max_file_bytes=settings.max_file_bytes,
        page_timeout_s=settings.render_page_timeout_s,
        open_timeout_s=settings.render_open_timeout_s,
        memory_bytes=settings.render_memory_bytes,
        pages_per_child=settings.render_pages_per_child,
    )
