"""Text that is written downwards: taking its characters apart and setting them in a row.

A line that reads downwards is cut out lying on its side, and the recognizer reads it so. Whether
the page stands right cannot be told from that alone: a horizontal line on a page that was turned
gives the same kind of crop. But the characters of vertical writing stand upright when each is
turned back on its own, and those of a turned page then lie on their side.
"""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.ink import ink_mask

# A row of the crop belongs to the characters' body from this share of the fullest row on.
_BODY_ROW_SHARE: Final = 0.15
# Parts of a character are joined until they are this much longer than a body is high.
_MAX_CHARACTER_BODIES: Final = 1.05
_MIN_BODY_PX: Final = 8
# Space from one character to the next in the row, in bodies.
_ADVANCE_BODIES: Final = 1.1
_MARGIN_PX: Final = 3


def set_in_row(crop: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Turn each character of a line upright and set them from left to right.

    Args:
        crop: (H, W, 3) uint8 RGB: a line that reads downwards, on its side, its beginning left.

    Returns:
        (H, W', 3) uint8 RGB, or None when the crop has no ink.
    """
    ink = ink_mask(crop)
    row_counts = ink.sum(axis=1)
    body_rows = np.flatnonzero(row_counts > _BODY_ROW_SHARE * row_counts.max(initial=0))
    if body_rows.size == 0:
        return None
    height_px = crop.shape[0]
    top = max(int(body_rows[0]) - _MARGIN_PX, 0)
    bottom = min(int(body_rows[-1]) + 1 + _MARGIN_PX, height_px)
    body_px = max(_MIN_BODY_PX, int(body_rows[-1]) + 1 - int(body_rows[0]))
    paper = np.median(crop[~ink], axis=0) if not ink.all() else np.full(3, 255)
    cells = []
    spans = _character_spans(ink.sum(axis=0) > 0, body_px)
    tallest = max(stop - start for start, stop in spans)
    side_px = max(tallest, round(_ADVANCE_BODIES * body_px))
    for start, stop in spans:
        cell = np.broadcast_to(paper.astype(np.uint8), (side_px, bottom - top, 3)).copy()
        offset = (side_px - (stop - start)) // 2
        cell[offset : offset + stop - start] = np.rot90(crop[top:bottom, start:stop], -1)
        cells.append(cell)
    row = np.concatenate(cells, axis=1)
    width_px = max(1, round(row.shape[1] * height_px / row.shape[0]))
    resized = cv2.resize(row, (width_px, height_px), interpolation=cv2.INTER_LINEAR)
    return np.asarray(resized, dtype=np.uint8)


def _character_spans(has_ink: NDArray[np.bool_], body_px: int) -> list[tuple[int, int]]:
    """Return the half-open ranges of characters along the line; at least one."""
    edges = np.flatnonzero(np.diff(np.r_[False, has_ink, False].astype(np.int8)))
    spans: list[tuple[int, int]] = []
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if spans and stop - spans[-1][0] <= _MAX_CHARACTER_BODIES * body_px:
            spans[-1] = (spans[-1][0], stop)
        else:
            spans.append((start, stop))
    return spans
