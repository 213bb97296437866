"""Ink of a whole page at low resolution: what is printed there, and what of it a layer explains.

In NumPy alone, because it is looked at in the render child, which loads no OpenCV.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Box

INK_DPI: Final = 72
"""At it a page costs a few milliseconds, and a letter of 6 pt still has 3 px."""

# A gray value differs from its neighborhood by so much where there is an edge of ink.
_EDGE_CONTRAST: Final = 40
# What differs by no more has been painted over, or was never seen.
_LEAST_CONTRAST: Final = 3
_Value = TypeVar("_Value", np.uint8, np.bool_)

_SAMPLE_STEP: Final = 16
_COLOR_DIMENSIONS: Final = 3
# Sides of what may be a letter, INK_DPI pixels; longer is a rule, a frame or a drawing.
_LETTER_HEIGHT_PX: Final = (4, 40)
_LETTER_WIDTH_PX: Final = (2, 60)
# A slanted hair or the corner of a frame fills less of its box.
_LEAST_LETTER_FILL: Final = 0.15


def has_ink(pixels: NDArray[np.uint8]) -> bool:
    """Whether anything at all is on a page.

    Args:
        pixels: (H, W) uint8 gray or (H, W, 3) uint8 RGB; paper of one color is blank.
    """
    # Nearly every page shows it in a few of its pixels; only a blank one is looked at whole.
    return any(
        int(channel.max()) - int(channel.min()) > _LEAST_CONTRAST
        for part in (pixels[::_SAMPLE_STEP, ::_SAMPLE_STEP], pixels)
        for channel in (part if part.ndim == _COLOR_DIMENSIONS else part[..., None]).transpose(
            2, 0, 1
        )
    )


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
    ink = _edges(gray)
    for box in explained:
        _part(ink, box, margin_px=2)[...] = False
    boxes, areas = _connected_shapes(ink)
    # Edges reach one pixel around a shape.
    widths, heights = (boxes[:, 2:] - boxes[:, :2] - 2).T
    fill = areas / ((widths + 2) * (heights + 2))
    is_letter = (
        (heights >= _LETTER_HEIGHT_PX[0])
        & (heights <= _LETTER_HEIGHT_PX[1])
        & (widths >= _LETTER_WIDTH_PX[0])
        & (widths <= _LETTER_WIDTH_PX[1])
        & (fill >= _LEAST_LETTER_FILL)
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
    if not regions:
        return []
    ink = _edges(gray)
    for box in explained:
        _part(ink, box, margin_px=1)[...] = False
    return [region for region in regions if _part(ink, region, margin_px=0).any()]


def _edges(gray: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Tell where values differ much between the neighbors of a pixel, itself included."""
    padded = np.pad(gray, 1, mode="edge")
    rows = (padded[:-2], padded[1:-1], padded[2:])
    darkest, brightest = np.minimum.reduce(rows), np.maximum.reduce(rows)
    low = np.minimum.reduce((darkest[:, :-2], darkest[:, 1:-1], darkest[:, 2:]))
    high = np.maximum.reduce((brightest[:, :-2], brightest[:, 1:-1], brightest[:, 2:]))
    is_edge: NDArray[np.bool_] = high - low > _EDGE_CONTRAST
    return is_edge


def _connected_shapes(
    ink: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find what hangs together, corners included: runs of ink along rows, joined where they touch.

    Returns:
        (N, 4) boxes and (N,) areas; pixels.
    """
    flat = np.pad(ink, ((0, 0), (1, 1))).ravel().astype(np.int8)
    edges = np.flatnonzero(np.diff(flat))
    width = ink.shape[1] + 2
    rows, starts = np.divmod(edges[::2] + 1, width)
    stops = starts + edges[1::2] - edges[::2]
    labels = _joined_runs(rows.tolist(), starts.tolist(), stops.tolist())
    count = int(labels.max(initial=-1)) + 1
    boxes = np.empty((count, 4), np.int64)
    boxes[:, :2], boxes[:, 2:] = np.iinfo(np.int64).max, 0
    np.minimum.at(boxes[:, 0], labels, starts)
    np.minimum.at(boxes[:, 1], labels, rows)
    np.maximum.at(boxes[:, 2], labels, stops)
    np.maximum.at(boxes[:, 3], labels, rows + 1)
    areas = np.bincount(labels, weights=stops - starts, minlength=count).astype(np.int64)
    return boxes, areas


def _joined_runs(rows: list[int], starts: list[int], stops: list[int]) -> NDArray[np.int64]:
    """Number runs, sorted by row and start, so that those that hang together have one number."""
    parents = list(range(len(rows)))

    def root(run: int) -> int:
        while parents[run] != run:
            parents[run] = parents[parents[run]]
            run = parents[run]
        return run

    above = 0
    for run, row in enumerate(rows):
        while rows[above] < row - 1 or (rows[above] == row - 1 and stops[above] < starts[run]):
            above += 1
        touching = above
        while rows[touching] == row - 1 and starts[touching] <= stops[run]:
            parents[root(run)] = root(touching)
            touching += 1
    numbers = np.array([root(run) for run in range(len(rows))], dtype=np.int64)
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _part(values: NDArray[_Value], box: Box, *, margin_px: int) -> NDArray[_Value]:
    height, width = values.shape[:2]
    left = min(max(int(box.x_min) - margin_px, 0), width)
    top = min(max(int(box.y_min) - margin_px, 0), height)
    right = min(max(int(np.ceil(box.x_max)) + margin_px, left), width)
    bottom = min(max(int(np.ceil(box.y_max)) + margin_px, top), height)
    return values[top:bottom, left:right]
