"""Ink of a whole page at low resolution: what is printed there, and what of it a layer explains."""

from collections.abc import Iterable, Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Box

INK_DPI: Final = 72
"""At it a page costs a few milliseconds, and a letter of 6 pt still has 3 px."""

# A gray value differs from its neighborhood by so much where there is an edge of ink.
_EDGE_CONTRAST: Final = 40
# What differs by no more has been painted over, or was never seen.
_LEAST_CONTRAST: Final = 3
# Sides of what may be a letter, INK_DPI pixels; longer is a rule, a frame or a drawing.
_LETTER_HEIGHT_PX: Final = (4, 40)
_LETTER_WIDTH_PX: Final = (2, 60)
# A letter is neither a hair nor a solid block: share of its box that is ink.
_LETTER_FILL: Final = (0.15, 0.97)


def has_ink(gray: NDArray[np.uint8]) -> bool:
    """Whether anything at all is on a page.

    Args:
        gray: (H, W) uint8 or (H, W, 3) uint8 RGB; paper of one color is blank.
    """
    return int(gray.max()) - int(gray.min()) > _LEAST_CONTRAST


def is_seen(gray: NDArray[np.uint8], box: Box) -> bool:
    """Whether there is ink in a box.

    Args:
        gray: (H, W) uint8.
        box: in the pixels of ``gray``; partly outside is allowed.
    """
    part = _part(gray, box, margin_px=1)
    return part.size > 0 and has_ink(part)


def letter_shapes(gray: NDArray[np.uint8], explained: Iterable[Box]) -> int:
    """Count shapes that may be letters outside the boxes in which ink is explained.

    Args:
        gray: (H, W) uint8 at ``INK_DPI``.
        explained: boxes of text and images, in the pixels of ``gray``.
    """
    square = np.ones((3, 3), np.uint8)
    edges = cv2.morphologyEx(gray, cv2.MORPH_GRADIENT, square)
    ink = (np.asarray(edges) > _EDGE_CONTRAST).astype(np.uint8)
    for box in explained:
        _part(ink, box, margin_px=2)[...] = 0
    _, _, stats, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    # Edges reach one pixel around a shape.
    widths = stats[1:, cv2.CC_STAT_WIDTH] - 2
    heights = stats[1:, cv2.CC_STAT_HEIGHT] - 2
    fill = stats[1:, cv2.CC_STAT_AREA] / ((widths + 2) * (heights + 2))
    is_letter = (
        (heights >= _LETTER_HEIGHT_PX[0])
        & (heights <= _LETTER_HEIGHT_PX[1])
        & (widths >= _LETTER_WIDTH_PX[0])
        & (widths <= _LETTER_WIDTH_PX[1])
        & (fill >= _LETTER_FILL[0])
        & (fill <= _LETTER_FILL[1])
    )
    return int(is_letter.sum())


def inked_regions(
    gray: NDArray[np.uint8], regions: Sequence[Box], explained: Iterable[Box]
) -> list[Box]:
    """Return the regions in which there is ink that no text explains.

    Args:
        gray: (H, W) uint8 at ``INK_DPI``.
        regions: of images, in the pixels of ``gray``.
        explained: boxes of text, likewise.
    """
    edges = np.asarray(cv2.morphologyEx(gray, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)))
    ink = (edges > _EDGE_CONTRAST).astype(np.uint8)
    for box in explained:
        _part(ink, box, margin_px=1)[...] = 0
    return [region for region in regions if _part(ink, region, margin_px=0).any()]


def _part(values: NDArray[np.uint8], box: Box, *, margin_px: int) -> NDArray[np.uint8]:
    height, width = values.shape[:2]
    left = min(max(int(box.x_min) - margin_px, 0), width)
    top = min(max(int(box.y_min) - margin_px, 0), height)
    right = min(max(int(np.ceil(box.x_max)) + margin_px, left), width)
    bottom = min(max(int(np.ceil(box.y_max)) + margin_px, top), height)
    return values[top:bottom, left:right]
