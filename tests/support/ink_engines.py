"""Engines and pages for tests of the engine: ink is text, and nothing of it is a model."""

import json
import threading

import numpy as np
from numpy.typing import NDArray

from tests.support.fake_sessions import FailingSession, InkDetector, InkReader, gray_of, ink_bundle
from workers.ocr.engine import EngineOptions, OcrEngine
from workers.ocr.errors import PoisonedContextError
from workers.ocr.inference import Session
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.page_text import page_text
from workers.ocr.result import PageResult, page_json


def page_of(*letters: str, page_index: int = 0) -> PageImage:
    """A page with a wide bar a letter, from the top, which reads as that letter."""
    pixels = np.full((80 * len(letters) + 80, 400, 3), 255, dtype=np.uint8)
    for row, letter in enumerate(letters):
        pixels[80 * row + 60 : 80 * row + 90, 50:350] = gray_of(letter)
    return PageImage(page_index, pixels, dpi=200.0, rotation_deg=90, render_s=0.25)


def engine(
    detector: Session | None = None, reader: Session | None = None, **options: object
) -> OcrEngine:
    return OcrEngine(
        ink_bundle(),
        EngineOptions(**options),  # type: ignore[arg-type]  each test names its own
        sessions=(detector or InkDetector(), reader or InkReader()),
    )


def read_one(ocr: OcrEngine, page: PageImage) -> PageResult | PageFailure:
    (outcome,) = ocr.read_pages([page])
    return outcome


def text_of(outcome: PageResult | PageFailure) -> str:
    return page_text(page_json(outcome))


def without_seconds(outcome: PageResult | PageFailure) -> str:
    return json.dumps({**page_json(outcome), "seconds": None, "page_number": None})


def work_thread_count() -> int:
    return sum(thread.name.startswith("ocr-") for thread in threading.enumerate())


class SilentReader(InkReader):
    """Sees nothing but blanks."""

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        return super().run(np.full_like(pixels, 255), widths_px)


def has_letter_b(pixels: NDArray[np.uint8]) -> bool:
    gray = pixels[:, 24, 100].astype(int)
    return bool((np.abs(gray - gray_of("B")) < 2).any())


def poisoned(session: Session) -> FailingSession:
    return FailingSession(session, lambda _: True, lambda: PoisonedContextError("gone"))
