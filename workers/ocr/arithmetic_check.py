"""A check of engine and precision at load: does a model still read what it reads in float32?

Arithmetic of lower precision or another optimizer can change texts without any error. The golden
page is found and read before any page of a user is; ``golden`` checks the models themselves, and
with more patience.
"""

from collections.abc import Collection

from workers.ocr.crops import cut_crop, reading_quads
from workers.ocr.detection import Detector
from workers.ocr.errors import ArithmeticCheckError, InferenceError
from workers.ocr.golden import GOLDEN_LINES, drawn_page
from workers.ocr.recognition import Recognizer


def check_arithmetic(
    detector: Detector, recognizer: Recognizer, *, crop_height_px: int, charset: Collection[str]
) -> None:
    """Find and read the golden page, whose every character has to be right.

    Args:
        detector: on the engine that is checked.
        recognizer: likewise.
        crop_height_px: of the recognizer.
        charset: of the recognizer; a line with other characters has to be found only.

    Raises:
        ArithmeticCheckError: a line is not found, or reads differently.
    """
    pixels = drawn_page().pixels
    quads = sorted(
        (detection.quad for detection in detector.detect(pixels)), key=lambda quad: quad.box.y_min
    )
    if len(quads) != len(GOLDEN_LINES):
        raise ArithmeticCheckError(
            f"the golden page has {len(GOLDEN_LINES)} lines, and {len(quads)} were found"
        )
    crops = [cut_crop(pixels, reading_quads(quad)[0], crop_height_px).pixels for quad in quads]
    for line, reading in zip(GOLDEN_LINES, recognizer.recognize(crops), strict=True):
        if isinstance(reading, InferenceError):
            raise reading
        # Spaces are lost easily, and words get them back by other means.
        if set(line) <= set(charset) and reading.text.replace(" ", "") != line.replace(" ", ""):
            raise ArithmeticCheckError(f"the line {line!r} was read as {reading.text!r}")
