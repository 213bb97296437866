"""Where a crop has ink: the columns between which words and pieces of a line are told apart."""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

# A column is blank when its gray values differ by less than this share of the line's own range.
_BLANK_SHARE: Final = 0.25


def column_contrast(pixels: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return by how much the gray values of each column differ.

    Args:
        pixels: (H, W, 3) uint8 RGB, crop pixels.

    Returns:
        (W,) in [0, 255].
    """
    gray = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)).astype(np.int16)
    contrast: NDArray[np.int16] = gray.max(axis=0) - gray.min(axis=0)
    return contrast


def blank_columns(contrast: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Tell which columns of a line hold no ink.

    Args:
        contrast: (W,) as ``column_contrast`` gives it; a line without any contrast is all blank.
    """
    blank: NDArray[np.bool_] = contrast <= _BLANK_SHARE * float(contrast.max(initial=0))
    return blank


def widest_blank(is_blank: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return the half-open range of the widest run of blank columns, the first of equals.

    Args:
        is_blank: (W,) of a line or a part of it; None is returned when no column is blank.
    """
    edges = np.flatnonzero(np.diff(np.r_[False, is_blank, False].astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    if starts.size == 0:
        return None
    widest = int(np.argmax(stops - starts))
    return int(starts[widest]), int(stops[widest])


def ink_mask(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Tell ink from paper by Otsu's threshold; the rarer of the two is ink.

    Args:
        pixels: (H, W, 3) uint8 RGB, crop pixels.

    Returns:
        (H, W) true where there is ink.
    """
    gray = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    _, bright = cv2.threshold(gray, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    is_bright: NDArray[np.bool_] = np.asarray(bright) > 0
    return ~is_bright if is_bright.mean() > 0.5 else is_bright  # noqa: PLR2004  the rarer half
