"""How large a page is shown to the detector, and in which tiles.

Shrinking a page loses small text without a sign, so the scale follows the size of the glyphs
that are on the page, and what does not fit one input is tiled instead of squeezed.
"""

import math
from itertools import pairwise
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Span

# Ordinary pages are found well at this side: A4 at 200 dpi keeps 10 pt letters 7 px high.
COMFORTABLE_SIDE_PX: Final = 1280
# Letters without ascenders stay at least this high in three quarters of a page's text; a text
# line is about twice as high.
LEGIBLE_GLYPH_PX: Final = 7.0
_MAX_ENLARGEMENT: Final = 2.0
# A frame of float32 probabilities of this size takes 160 MB; no scale makes a larger one.
MAX_FRAME_PX: Final = 40_000_000
# One input up to this side; larger frames are cut into tiles.
MAX_INPUT_SIDE_PX: Final = 1600
TILE_SIDE_PX: Final = 1280
TILE_OVERLAP_PX: Final = 160

_MIN_GLYPH_HEIGHT_PX: Final = 4
_MAX_GLYPH_HEIGHT_PX: Final = 200
_MIN_GLYPH_COUNT: Final = 20
# Letters are measured in windows, because their labels take four bytes a pixel.
_WINDOW_SIDE_PX: Final = 4096
_SMALL_TEXT_SHARE: Final = 0.25


def estimate_glyph_height_px(pixels: NDArray[np.uint8]) -> float | None:
    """Estimate how high the smaller letters of a page are.

    Dark or bright marks that stand out from their neighborhood are measured one by one. The
    answer is the height that a quarter of them stay under, weighted by height, so that a little
    dust changes nothing and a page with some small print counts as a page with small print.

    Args:
        pixels: (H, W, 3) uint8 RGB, page pixels.

    Returns:
        Page pixels; None when the page has too few marks to tell.
    """
    windows = [
        pixels[top : top + _WINDOW_SIDE_PX, left : left + _WINDOW_SIDE_PX]
        for top in range(0, pixels.shape[0], _WINDOW_SIDE_PX)
        for left in range(0, pixels.shape[1], _WINDOW_SIDE_PX)
    ]
    glyph_heights = np.sort(np.concatenate([_glyph_heights(window) for window in windows]))
    if glyph_heights.size < _MIN_GLYPH_COUNT:
        return None
    cumulated = np.cumsum(glyph_heights)
    return float(glyph_heights[np.searchsorted(cumulated, _SMALL_TEXT_SHARE * cumulated[-1])])


def choose_scale(height_px: int, width_px: int, glyph_height_px: float | None) -> float:
    """Choose model pixels per page pixel for detection.

    Args:
        height_px: of the page.
        width_px: of the page.
        glyph_height_px: of the smaller letters, None when unknown.

    Returns:
        A scale in (0, 2]: as small as a comfortable side allows, but never so small that letters
        become illegible, and never so large that the frame passes ``MAX_FRAME_PX``.
    """
    scale = min(1.0, COMFORTABLE_SIDE_PX / max(height_px, width_px))
    if glyph_height_px is not None:
        scale = max(scale, min(_MAX_ENLARGEMENT, LEGIBLE_GLYPH_PX / glyph_height_px))
    return min(scale, math.sqrt(MAX_FRAME_PX / (height_px * width_px)))


def tile_spans(length_px: int) -> tuple[Span, ...]:
    """Cut one axis of the detector's frame into inputs of equal size that overlap.

    The kept parts meet in the middle of each overlap, so they cover the axis once, and every
    kept pixel lies at least half an overlap inside its tile.

    Args:
        length_px: of the axis, positive.
    """
    if length_px <= MAX_INPUT_SIDE_PX:
        return (Span(0, length_px, 0, length_px),)
    count = math.ceil((length_px - TILE_OVERLAP_PX) / (TILE_SIDE_PX - TILE_OVERLAP_PX))
    starts = [round(i * (length_px - TILE_SIDE_PX) / (count - 1)) for i in range(count)]
    cuts = [(left + TILE_SIDE_PX + right) // 2 for left, right in pairwise(starts)]
    bounds = [0, *cuts, length_px]
    return tuple(
        Span(start, start + TILE_SIDE_PX, kept_start, kept_stop)
        for start, (kept_start, kept_stop) in zip(starts, pairwise(bounds), strict=True)
    )


def _glyph_heights(window: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return the heights of the marks that have the proportions of a letter."""
    gray = cv2.cvtColor(window, cv2.COLOR_RGB2GRAY)
    if float(np.median(gray)) < 128:  # noqa: PLR2004  the middle of uint8: bright text on dark
        gray = cv2.bitwise_not(gray)
    marks = cv2.adaptiveThreshold(
        gray, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, blockSize=31, C=15
    )
    _, _, stats, _ = cv2.connectedComponentsWithStats(marks, connectivity=8)
    widths = stats[1:, cv2.CC_STAT_WIDTH]
    heights = stats[1:, cv2.CC_STAT_HEIGHT]
    areas = stats[1:, cv2.CC_STAT_AREA]
    is_glyph = (
        (heights >= _MIN_GLYPH_HEIGHT_PX)
        & (heights <= _MAX_GLYPH_HEIGHT_PX)
        & (widths > 1)
        & (widths <= heights * 4)
        & (areas * 10 >= heights * widths)
    )
    return np.asarray(heights[is_glyph], dtype=np.int32)
