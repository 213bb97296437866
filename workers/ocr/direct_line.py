"""The direct path: an image that is as low as one line is read without looking for lines in it.

Detection would cost two thirds of what the reading costs, and could find one line only. What is
read is believed where recognition is sure of it; anything else takes the ordinary way.
"""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Quad
from workers.ocr.ink import blank_columns, widest_blank
from workers.ocr.recognition import RecognizedLine

# Ink of one line; and with the paper that a mixed page leaves on either side, whole pixels.
_MAX_LINE_HEIGHT_PX: Final = 32
_MAX_IMAGE_HEIGHT_PX: Final = 50
# Lower ink is a rule or dust, and what is less wide a letter or a mark.
_MIN_LINE_HEIGHT_PX: Final = 6
_MIN_ASPECT: Final = 2.0
# Gray values of paper differ by less.
_MIN_CONTRAST: Final = 32
# A gap wider than so many line heights parts two columns, whose texts are lines of their own.
_MAX_GAP_HEIGHTS: Final = 2.0
# A blank row with so much of the height on either side parts two lines; a dot or an accent is less.
_MIN_BAND_SHARE: Final = 0.3
# The recognizer learned its crops with a margin around the ink; without one CER grows by half.
_MARGIN_SHARE: Final = 0.15
# Measured on 405 cuts: upside down they are read with 0.89 at most.
_MIN_CONFIDENCE: Final = 0.93
DIRECT_SCORE: Final = 1.0
"""Detection score of a line that nothing had to be detected for."""


def direct_quad(pixels: NDArray[np.uint8]) -> Quad | None:
    """Return where the only line of an image is, None where there may be more or none.

    Args:
        pixels: (H, W, 3) uint8 RGB, page pixels.

    Returns:
        An upright quad around the ink, with a margin as far as the image has one.
    """
    height_px, width_px = pixels.shape[:2]
    if height_px > _MAX_IMAGE_HEIGHT_PX or width_px < _MIN_ASPECT * _MIN_LINE_HEIGHT_PX:
        return None
    departure = _departure_from_paper(pixels)
    if int(departure.max()) < _MIN_CONTRAST:
        return None
    rows = _InkRange(blank_columns(departure.max(axis=1)))
    columns = _InkRange(blank_columns(departure[rows.start : rows.stop].max(axis=0)))
    if not _is_one_line(rows, columns):
        return None
    margin_px = round(_MARGIN_SHARE * rows.length)
    left, right = max(columns.start - margin_px, 0), min(columns.stop + margin_px, width_px)
    top, bottom = max(rows.start - margin_px, 0), min(rows.stop + margin_px, height_px)
    # The ranges leave out what is faint beside the darkest ink: gray text beside black.
    departure[top:bottom, left:right] = 0
    if int(departure.max()) >= _MIN_CONTRAST:
        return None
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return Quad(np.array(corners, dtype=np.float32))


def is_certain(reading: RecognizedLine) -> bool:
    """Tell whether a reading of the whole image stands without a look for lines in it."""
    return bool(reading.text.strip()) and reading.confidence >= _MIN_CONFIDENCE


def _departure_from_paper(pixels: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return (H, W) by how much each gray value differs from what most of the image has."""
    gray = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)).astype(np.int16)
    departure: NDArray[np.int16] = np.abs(gray - np.int16(np.median(gray)))
    return departure


class _InkRange:
    """Where ink begins and ends along one axis, and the widest gap inside."""

    def __init__(self, is_blank: NDArray[np.bool_]) -> None:
        inked = np.flatnonzero(~is_blank)
        self.start, self.stop = int(inked[0]), int(inked[-1]) + 1
        gap = widest_blank(is_blank[self.start : self.stop])
        self._gap = (0, 0) if gap is None else gap

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def widest_gap(self) -> int:
        return self._gap[1] - self._gap[0]

    @property
    def least_band(self) -> int:
        """The smaller of the two parts on either side of the gap, 0 without one."""
        return min(self._gap[0], self.length - self._gap[1]) if self.widest_gap else 0


def _is_one_line(rows: _InkRange, columns: _InkRange) -> bool:
    return (
        _MIN_LINE_HEIGHT_PX <= rows.length <= _MAX_LINE_HEIGHT_PX
        and columns.length >= _MIN_ASPECT * rows.length
        and columns.widest_gap <= _MAX_GAP_HEIGHTS * rows.length
        and rows.least_band <= _MIN_BAND_SHARE * rows.length
    )
