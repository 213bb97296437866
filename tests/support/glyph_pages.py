"""Pages of signs that show which way up they are, and a reader that looks at nothing else.

A sign is a thick bar over a thin one, set apart from the next. The reader reads "字" or "a" where
the thick bars are on top, or on the left as in downward writing that lies on its side, and noise
where they are elsewhere: what a recognizer does with real text.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.detection import Detection
from workers.ocr.errors import InferenceError
from workers.ocr.geometry import Quad
from workers.ocr.long_lines import PlacedCharacter
from workers.ocr.page_image import PageImage
from workers.ocr.recognition import RecognizedLine

_SIGN_PX = 20
_PITCH_PX = 26
_LINE_STEP_PX = 60


def sign_page(*, downwards: bool, lines: int = 5, signs: int = 12) -> PageImage:
    """Return an upright page of signs, in lines that run to the right or downwards."""
    pixels = np.full((520, 480, 3), 255, dtype=np.uint8)
    for line in range(lines):
        for sign in range(signs):
            across, along = 60 + line * _LINE_STEP_PX, 60 + sign * _PITCH_PX
            x, y = (across, along) if downwards else (along, across)
            pixels[y : y + 8, x : x + _SIGN_PX] = 0
            pixels[y + _SIGN_PX - 3 : y + _SIGN_PX, x : x + _SIGN_PX] = 0
            pixels[y : y + _SIGN_PX, x + 9 : x + 11] = 0
    return PageImage(0, pixels, dpi=200.0)


def find_sign_lines(pixels: NDArray[np.uint8]) -> list[Detection]:
    """Find the lines of such a page, whichever way it is turned."""
    ink = (pixels[:, :, 0] < 128).astype(np.uint8)
    joined = cv2.dilate(ink, np.ones((9, 9), dtype=np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(joined)
    detections = []
    for x, y, width, height, _ in stats[1:].tolist():
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        detections.append(Detection(Quad(np.array(corners, dtype=np.float32)), 0.9))
    return detections


class SignReader:
    """Reads crops of signs; ``crop_count`` says how many it was shown."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self.crop_count = 0

    def __call__(self, crops: Sequence[NDArray[np.uint8]]) -> list[RecognizedLine | InferenceError]:
        self.crop_count += len(crops)
        return [self._read(crop) for crop in crops]

    def _read(self, crop: NDArray[np.uint8]) -> RecognizedLine:
        ink = crop[:, :, 0] < 128
        is_right = _begins_thick(ink.sum(axis=1), share=0.6) or _begins_thick(
            ink[:, : _first_sign(ink)].sum(axis=0), share=0.6
        )
        text, confidence = (self._letter * 8, 0.97) if is_right else ("#~ -", 0.4)
        return RecognizedLine(
            tuple(
                PlacedCharacter(character, place * 8.0, place * 8.0 + 8, confidence)
                for place, character in enumerate(text)
            )
        )


def _first_sign(ink: NDArray[np.bool_]) -> int:
    """Return where the first sign ends along the crop."""
    has_ink = ink.any(axis=0)
    start = int(np.argmax(has_ink))
    return start + int(np.argmin(np.r_[has_ink[start:], False]))


def _begins_thick(profile: NDArray[np.intp], *, share: float) -> bool:
    """Tell whether the first of a profile's bars is the thickest of all."""
    is_bar = profile > share * profile.max(initial=1)
    edges = np.flatnonzero(np.diff(np.r_[False, is_bar, False].astype(np.int8)))
    widths = edges[1::2] - edges[::2]
    return widths.size > 1 and bool(widths[0] > 1.5 * widths[1:].max())
