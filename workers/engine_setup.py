"""Make the engine and the renderer's limits from settings; a worker and ``pagefleet ocr`` share it.

Apart from ``workers.runtime``, because reading a file needs no database, broker or storage.
"""

from workers.devices import Device
from workers.ocr.engine import EngineOptions, OcrEngine
from workers.ocr.golden import check_golden
from workers.ocr.profiles import open_profile
from workers.page_renderer import RenderLimits
from workers.settings import OcrSettings


def make_engine(settings: OcrSettings, device: Device) -> OcrEngine:
    """Load the models, make the engine that runs them on ``device``, and see that it can read.

    A ``ModelFileError`` passes through: a file is missing or does not fit, or the golden page was
    misread.
    """
    bundle = open_profile(settings.profile, settings.models_dir)
    engine = OcrEngine(
        bundle,
        EngineOptions(
            device=device.kind,
            rec_chunk_size=settings.rec_chunk_size,
            max_minibatch_px_columns=settings.rec_minibatch_px_columns,
            max_crops=settings.max_crops_per_page,
            threads=settings.ocr_threads,
        ),
    )
    check_golden(engine, bundle)
    return engine


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
