"""Boxes of lines in the reading frame, where lines run along u and follow each other along v."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]
"""(N, 4): u_min, v_min, u_max, v_max of each line."""

Members = NDArray[np.intp]
"""Positions of lines in ``Boxes``."""

ALIGNED_HEIGHTS: Final = 0.2
"""Lines whose centers are this near, in line heights, stand in one row."""


def centers_of(boxes: Boxes) -> NDArray[np.float64]:
    """Return (N,) the middles of lines across the reading direction."""
    centers: NDArray[np.float64] = (boxes[:, 1] + boxes[:, 3]) / 2
    return centers


def heights_of(boxes: Boxes) -> NDArray[np.float64]:
    """Return (N,) the heights of lines."""
    heights: NDArray[np.float64] = boxes[:, 3] - boxes[:, 1]
    return heights


def widths_of(boxes: Boxes) -> NDArray[np.float64]:
    """Return (N,) the lengths of lines along the reading direction."""
    widths: NDArray[np.float64] = boxes[:, 2] - boxes[:, 0]
    return widths


def mirrored(boxes: Boxes) -> Boxes:
    """Return boxes with the beginning of lines where their end was."""
    flipped: Boxes = boxes[:, [2, 1, 0, 3]] * (-1, 1, -1, 1)
    return flipped
