"""Reading order of text lines, and the blocks that they form.

Everything happens in the reading frame: the page turned so that most lines read to the right.
For vertical Japanese, whose lines read downwards and follow each other to the left, that turn
makes columns of it that behave as lines do, so one method serves both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Quad, rotate_points

# A gutter between columns is at least this wide, in line heights.
_MIN_GUTTER_HEIGHTS: Final = 0.6
# Columns hold at least so many lines on each side of the gutter …
_MIN_COLUMN_LINES: Final = 3
# … and running text: lines this long in line heights. Shorter ones are cells of a table or a
# form, which are read row by row.
_MIN_PROSE_WIDTH_HEIGHTS: Final = 6.0
# A new block begins where the step to the next line is this much more than the usual step …
_BLOCK_STEP_RATIO: Final = 1.4
# … or where the line height changes by this factor.
_BLOCK_HEIGHT_RATIO: Final = 1.6

_Boxes = NDArray[np.float64]  # (N, 4): u_min, v_min, u_max, v_max in the reading frame
_Members = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """Positions of the lines in reading order, cut into blocks.

    Attributes:
        blocks: each the positions of its lines; together every position once.
        angle_deg: the direction in which most lines read, clockwise from "to the right".
    """

    blocks: tuple[tuple[int, ...], ...]
    angle_deg: float

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(position for block in self.blocks for position in block)


def order_lines(quads: Sequence[Quad]) -> ReadingOrder:
    """Find the reading order of a page's lines.

    Columns of running text are read one after the other, all else from the top, and within a row
    along the reading direction.

    Args:
        quads: of the lines, page pixels.

    Returns:
        The order, with no block for no line.
    """
    if not quads:
        return ReadingOrder(blocks=(), angle_deg=0.0)
    angle_deg = reading_angle_deg(quads)
    boxes = _reading_frame_boxes(quads, angle_deg)
    blocks = [
        tuple(int(position) for position in block)
        for column in _columns(boxes, np.arange(len(quads)))
        for block in _column_blocks(boxes, column)
    ]
    return ReadingOrder(blocks=tuple(blocks), angle_deg=angle_deg)


def reading_angle_deg(quads: Sequence[Quad]) -> float:
    """Return the direction in which most of the text reads, long lines counting more.

    Lines are first sorted into the four directions of the page's sides; the answer is the
    weighted median of the strongest.

    Args:
        quads: of the lines, page pixels; at least one.
    """
    angles = np.array([quad.angle_deg for quad in quads])
    weights = np.array([quad.width for quad in quads])
    sides = np.round(angles / 90).astype(int) % 4
    strongest = int(np.argmax(np.bincount(sides, weights=weights, minlength=4)))
    chosen = sides == strongest
    # Measured from the side's own direction, so that 179 and -179 degrees are neighbors.
    deviations = (angles[chosen] - strongest * 90 + 180) % 360 - 180
    order = np.argsort(deviations, kind="stable")
    cumulated = np.cumsum(weights[chosen][order])
    middle = int(np.searchsorted(cumulated, cumulated[-1] / 2))
    side_deg = strongest * 90 if strongest < 3 else -90  # noqa: PLR2004  270 degrees are -90
    return float(side_deg + deviations[order][middle])


def _reading_frame_boxes(quads: Sequence[Quad], angle_deg: float) -> _Boxes:
    corners = rotate_points(np.stack([quad.corners for quad in quads]), -angle_deg)
    return np.concatenate((corners.min(axis=1), corners.max(axis=1)), axis=1)


def _columns(boxes: _Boxes, members: _Members) -> list[_Members]:
    """Cut a region into columns in reading order; each is then read row by row."""
    gutter = _best_gutter(boxes, members)
    if gutter is None:
        return [members]
    above, left, right, below = gutter
    return [
        column
        for part in (above, left, right, below)
        if part.size
        for column in _columns(boxes, part)
    ]


def _best_gutter(
    boxes: _Boxes, members: _Members
) -> tuple[_Members, _Members, _Members, _Members] | None:
    """Find the gutter with the most lines beside it: lines above, left, right and below.

    A gutter is a strip that no line crosses between two lines that do, or the region's ends. So
    a title over two columns, or a figure's caption between them, ends it.
    """
    if members.size < 2 * _MIN_COLUMN_LINES:
        return None
    region = boxes[members]
    heights = region[:, 3] - region[:, 1]
    line_height = float(np.median(heights))
    least_width = _MIN_GUTTER_HEIGHTS * line_height
    centers = (region[:, 1] + region[:, 3]) / 2
    best: tuple[int, NDArray[np.bool_], NDArray[np.bool_], float, float] | None = None
    for left_edge in _candidate_edges(region, line_height):
        is_left = region[:, 2] <= left_edge
        is_right = region[:, 0] >= left_edge + least_width
        crossing = np.sort(centers[~(is_left | is_right)])
        bounds = np.r_[-np.inf, crossing, np.inf]
        bands = np.searchsorted(crossing, centers)
        left_counts = np.bincount(bands[is_left], minlength=bounds.size - 1)
        right_counts = np.bincount(bands[is_right], minlength=bounds.size - 1)
        # A column beside nothing is no column: the shorter one decides.
        band = int(np.argmax(np.minimum(left_counts, right_counts)))
        left = is_left & (bands == band)
        right = is_right & (bands == band)
        count = int(min(left_counts[band], right_counts[band]))
        if best is not None and count <= best[0]:
            continue
        if _is_running_text(region[left], line_height) and _is_running_text(
            region[right], line_height
        ):
            best = (count, left, right, float(bounds[band]), float(bounds[band + 1]))
    if best is None:
        return None
    _, left, right, top, bottom = best
    beside = left | right
    above = ~beside & (centers <= top)
    below = ~beside & (centers >= bottom)
    return members[above], members[left], members[right], members[below]


def _candidate_edges(region: _Boxes, line_height: float) -> NDArray[np.float64]:
    """Return where a gutter may begin: at the right ends of lines, near ones taken together."""
    ends = np.sort(region[:, 2])
    cells = np.floor(ends / (line_height / 2))
    # The last of each cell, so that the edge lies right of all lines that end in it.
    return ends[np.r_[cells[1:] != cells[:-1], True]]


def _is_running_text(lines: _Boxes, line_height: float) -> bool:
    if len(lines) < _MIN_COLUMN_LINES:
        return False
    widths = lines[:, 2] - lines[:, 0]
    return float(np.median(widths)) >= _MIN_PROSE_WIDTH_HEIGHTS * line_height


def _rows(boxes: _Boxes, members: _Members) -> list[list[int]]:
    """Group lines into rows from the top; within a row they run along the reading direction."""
    centers = (boxes[:, 1] + boxes[:, 3]) / 2
    heights = boxes[:, 3] - boxes[:, 1]
    rows: list[list[int]] = []
    for position in members[np.argsort(centers[members], kind="stable")].tolist():
        if rows:
            last = rows[-1]
            row_center = float(np.mean(centers[last]))
            reach = min(heights[position], float(np.mean(heights[last]))) / 2
            if centers[position] - row_center < reach:
                last.append(position)
                continue
        rows.append([position])
    return [sorted(row, key=lambda position: float(boxes[position, 0])) for row in rows]


def _column_blocks(boxes: _Boxes, column: _Members) -> list[list[int]]:
    """Cut a column into blocks where the step or the height of its rows changes."""
    rows = _rows(boxes, column)
    row_boxes = np.array([
        np.r_[boxes[row, :2].min(axis=0), boxes[row, 2:].max(axis=0)] for row in rows
    ])
    heights = np.array([float(np.median(boxes[row, 3] - boxes[row, 1])) for row in rows])
    steps = np.diff((row_boxes[:, 1] + row_boxes[:, 3]) / 2)
    usual_step = float(np.median(steps)) if steps.size else 0.0
    blocks = [list(rows[0])]
    for index in range(1, len(rows)):
        ratio = heights[index] / max(heights[index - 1], 1e-6)
        is_apart = steps[index - 1] > _BLOCK_STEP_RATIO * max(
            min(usual_step, 2 * heights[index]), heights[index]
        )
        is_other_size = not 1 / _BLOCK_HEIGHT_RATIO < ratio < _BLOCK_HEIGHT_RATIO
        if is_apart or is_other_size:
            blocks.append([])
        blocks[-1].extend(rows[index])
    return blocks
