"""The part of a page that has ink, where that is little of it and the rest is blank.

A detector learned from pages full of text. Of a lone word on a white page it is less sure than of
the same word in a cutting; see docs/detection-parameters.md.
"""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

# A larger window is as good as the whole page.
_MOST_OF_PAGE: Final = 0.5
# Paper that differs by more is no blank one: what is faint would be cut away with it.
_BLANK_CONTRAST: Final = 6
# The page is looked at no finer than that its longer side keeps so many pixels.
_LOOK_SIDE_PX: Final = 1000
_MARGIN_SHARE: Final = 0.02
_MIN_MARGIN_PX: Final = 16


def inked_window(pixels: NDArray[np.uint8]) -> tuple[slice, slice]:
    """Return the rows and columns around all ink of a page, with a margin.

    Args:
        pixels: (H, W, 3) uint8 RGB, page pixels.

    Returns:
        Page pixels. The whole page where ink is spread over it, as on nearly every one, where the
        paper is not of one color, and where there is no ink.
    """
    height_px, width_px = pixels.shape[:2]
    step = max(1, max(height_px, width_px) // _LOOK_SIDE_PX)
    gray = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY))
    small_size = (-(-width_px // step), -(-height_px // step))
    gray = np.asarray(cv2.resize(gray, small_size, interpolation=cv2.INTER_AREA)).astype(np.int16)
    is_ink = np.abs(gray - np.int16(np.median(gray))) > _BLANK_CONTRAST
    margin_px = max(_MIN_MARGIN_PX, round(_MARGIN_SHARE * max(height_px, width_px)))
    # A rounded size puts what is seen up to one step from where it is.
    rows, columns = (
        _around(np.flatnonzero(is_ink.any(axis=axis)), step, margin_px + step, length_px)
        for axis, length_px in ((1, height_px), (0, width_px))
    )
    area = (rows.stop - rows.start) * (columns.stop - columns.start)
    if area > _MOST_OF_PAGE * height_px * width_px:
        return slice(0, height_px), slice(0, width_px)
    return rows, columns


def _around(inked: NDArray[np.intp], step: int, margin_px: int, length_px: int) -> slice:
    """Return the range of an axis around its inked places; the whole of it without any."""
    if inked.size == 0:
        return slice(0, length_px)
    start, stop = int(inked[0]) * step - margin_px, (int(inked[-1]) + 1) * step + margin_px
    return slice(max(0, start), min(length_px, stop))
