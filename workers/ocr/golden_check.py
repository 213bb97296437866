"""A check at load: does a model, on this engine at this precision, still read what it should?

Arithmetic of lower precision, another optimizer or a wrong model file can change texts without
any error. A printed page whose text is known is found and read before any page of a user is.
"""

from collections.abc import Collection
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.crops import cut_crop, reading_quads
from workers.ocr.detection import Detector
from workers.ocr.errors import GoldenCheckError, InferenceError
from workers.ocr.geometry import Quad
from workers.ocr.recognition import Recognizer

# In OpenCV's built-in letters, so that no font file is needed.
GOLDEN_LINES: Final = ("Invoice 2041", "Total: 1,208.50", "the quick brown fox", "JUMPS OVER 37")
_STEP_PX: Final = 90
_LEFT_PX: Final = 40
_LETTER_SCALE: Final = 1.4
_STROKE_PX: Final = 2
# How far a detected side may lie from the printed one.
_TOLERANCE_PX: Final = 16.0


def golden_page() -> tuple[NDArray[np.uint8], tuple[Quad, ...]]:
    """Return the printed page, (H, W, 3) uint8 RGB, and the outline of each of its lines."""
    height_px = _STEP_PX * (len(GOLDEN_LINES) + 1)
    pixels = np.full((height_px, 640, 3), 255, dtype=np.uint8)
    quads = []
    for row, line in enumerate(GOLDEN_LINES, start=1):
        before = pixels.copy()
        cv2.putText(
            pixels,
            line,
            (_LEFT_PX, row * _STEP_PX),
            cv2.FONT_HERSHEY_SIMPLEX,
            _LETTER_SCALE,
            (20, 20, 20),
            _STROKE_PX,
            cv2.LINE_AA,
        )
        rows, columns = np.nonzero((before != pixels).any(axis=2))
        left, right, top, bottom = columns.min(), columns.max(), rows.min(), rows.max()
        quads.append(
            Quad.from_corners(
                np.array(
                    [(left, top), (right, top), (right, bottom), (left, bottom)], dtype=np.float32
                )
            )
        )
    return pixels, tuple(quads)


def check_models(
    detector: Detector, recognizer: Recognizer, *, crop_height_px: int, charset: Collection[str]
) -> None:
    """Find and read the golden page.

    Args:
        detector: on the engine that is checked.
        recognizer: likewise.
        crop_height_px: of the recognizer.
        charset: of the recognizer; a line with other characters has to be found only.

    Raises:
        GoldenCheckError: a line is not found where it was printed, or reads differently.
    """
    pixels, printed = golden_page()
    found = sorted(
        (detection.quad for detection in detector.detect(pixels)), key=lambda quad: quad.box.y_min
    )
    if len(found) != len(printed) or any(
        _distance_px(quad, expected) > _TOLERANCE_PX
        for quad, expected in zip(found, printed, strict=True)
    ):
        raise GoldenCheckError(
            f"{len(printed)} lines were printed, and {len(found)} were found, or elsewhere"
        )
    crops = [cut_crop(pixels, reading_quads(quad)[0], crop_height_px).pixels for quad in found]
    for line, reading in zip(GOLDEN_LINES, recognizer.recognize(crops), strict=True):
        if isinstance(reading, InferenceError):
            raise reading
        if set(line) <= set(charset) and reading.text.replace(" ", "") != line.replace(" ", ""):
            raise GoldenCheckError(f"the line {line!r} was read as {reading.text!r}")


def _distance_px(quad: Quad, other: Quad) -> float:
    """Return the largest distance between corresponding sides of two boxes."""
    return max(
        abs(quad.box.x_min - other.box.x_min),
        abs(quad.box.y_min - other.box.y_min),
        abs(quad.box.x_max - other.box.x_max),
        abs(quad.box.y_max - other.box.y_max),
    )
