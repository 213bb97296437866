"""Cutting a page into columns of running text.

Boxes are (N, 4) arrays of u_min, v_min, u_max, v_max in the reading frame, where lines run along
u and follow each other along v; members are positions of its rows.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]
Members = NDArray[np.intp]

# A page's header or footer is one row, this far from the rest, in line heights, …
_MARGIN_GAP_HEIGHTS: Final = 1.2
# … in no larger type, up to this factor, …
_MARGIN_HEIGHT_RATIO: Final = 1.3
# … and each of its parts is at most this wide, as a share of the page's text.
_MARGIN_WIDTH_SHARE: Final = 0.6

# A gutter between columns is at least this wide, in line heights. Detected lines are grown by a
# third of their height at both ends, so that little is left of a narrow one.
_MIN_GUTTER_HEIGHTS: Final = 0.25
# Columns hold at least so many lines on each side of the gutter …
_MIN_COLUMN_LINES: Final = 3
# … and running text: lines this long in line heights. Shorter ones are cells of a table or a
# form, which are read row by row.
_MIN_PROSE_WIDTH_HEIGHTS: Final = 6.0
# Lines that stick out below the other column, so much further from their own than its lines are
# from each other, and so few, head what follows under both.
_LOOSE_STEP_RATIO: Final = 1.4
_MAX_LOOSE_LINES: Final = 3
# Lines whose centers are this near, in line heights, stand in one row.
ALIGNED_HEIGHTS: Final = 0.2
# Two stacks of lines are columns of a table when most rows of the shorter one are aligned and …
_TABLE_ALIGNED_SHARE: Final = 0.7
# … the usual lines of both are this much shorter than their long ones, or …
_PROSE_FILL: Final = 0.88
# … those of one are this short, in line heights, or …
_MAX_CELL_WIDTH_HEIGHTS: Final = 9.0
# … rows are this far apart, in line heights.
_TABLE_STEP_HEIGHTS: Final = 1.8


@dataclass(frozen=True, slots=True)
class _Gutter:
    """Lines beside a gutter and outside its ends; ``count`` of the side with fewer."""

    count: int
    above: Members
    left: Members
    right: Members
    below: Members


def cut_into_columns(boxes: Boxes, members: Members, *, has_tables: bool) -> list[Members]:
    """Cut a region into parts in reading order; each is then read row by row.

    Args:
        boxes: (N, 4) of all lines.
        members: positions of the region's lines.
        has_tables: whether columns whose rows are aligned may be those of a table. In writing
            that runs downwards the characters of neighboring tiers are always aligned.
    """
    gutter = _best_gutter(boxes, members, has_tables=has_tables)
    if gutter is None:
        return [members]
    return [
        column
        for part in (gutter.above, gutter.left, gutter.right, gutter.below)
        if part.size
        for column in cut_into_columns(boxes, part, has_tables=has_tables)
    ]


def split_off_margins(boxes: Boxes, members: Members) -> tuple[Members, Members, Members]:
    """Return the lines of a page's header, of its body and of its footer.

    A running title and a page number stand over columns without crossing the gutter.
    """
    header = _margin_row(boxes, members)
    rest = np.setdiff1d(members, header)
    # Upside down, a footer is a header.
    footer = _margin_row(-boxes[:, [2, 3, 0, 1]], rest)
    return header, np.setdiff1d(rest, footer), footer


def _margin_row(boxes: Boxes, members: Members) -> Members:
    none = members[:0]
    if members.size <= 2 * _MIN_COLUMN_LINES:
        return none
    region = boxes[members]
    line_height = float(np.median(heights_of(region)))
    first = int(np.argmin(region[:, 3]))
    is_row = centers_of(region) <= region[first, 3]
    if is_row.all():
        return none
    row, rest = region[is_row], region[~is_row]
    is_small = heights_of(row).max() <= _MARGIN_HEIGHT_RATIO * line_height
    text_width = float(region[:, 2].max() - region[:, 0].min())
    is_short = _widths(row).max() <= _MARGIN_WIDTH_SHARE * text_width
    gap = float(rest[:, 1].min() - row[:, 3].max())
    is_apart = gap > _MARGIN_GAP_HEIGHTS * line_height
    return members[is_row] if is_small and is_short and is_apart else none


def centers_of(boxes: Boxes) -> NDArray[np.float64]:
    """Return (N,) the middles of lines across the reading direction."""
    centers: NDArray[np.float64] = (boxes[:, 1] + boxes[:, 3]) / 2
    return centers


def heights_of(boxes: Boxes) -> NDArray[np.float64]:
    """Return (N,) the heights of lines."""
    heights: NDArray[np.float64] = boxes[:, 3] - boxes[:, 1]
    return heights


def _best_gutter(boxes: Boxes, members: Members, *, has_tables: bool) -> _Gutter | None:
    """Find the gutter with the most lines beside it.

    A gutter is a strip that no line crosses between two lines that do, or the region's ends. So
    a title over two columns, or a figure's caption between them, ends it.
    """
    if members.size < 2 * _MIN_COLUMN_LINES:
        return None
    line_height = float(np.median(heights_of(boxes[members])))
    best: _Gutter | None = None
    starts, stops = np.sort(boxes[members, 0]), np.sort(boxes[members, 2])
    for left_edge in _candidate_edges(boxes[members], line_height):
        # Cheaply: the lines on either side of the whole strip, wherever it ends.
        right_edge = left_edge + _MIN_GUTTER_HEIGHTS * line_height
        most = min(
            int(np.searchsorted(stops, left_edge, side="right")),
            int(members.size - np.searchsorted(starts, right_edge)),
        )
        if most < _MIN_COLUMN_LINES or (best is not None and most <= best.count):
            continue
        gutter = _gutter_at(boxes, members, left_edge, line_height)
        if best is not None and gutter.count <= best.count:
            continue
        left, right = boxes[gutter.left], boxes[gutter.right]
        if _are_columns(left, right, line_height) and not (
            has_tables and _is_table(left, right, line_height)
        ):
            best = gutter
    return best


def _gutter_at(boxes: Boxes, members: Members, left_edge: float, line_height: float) -> _Gutter:
    region = boxes[members]
    centers = centers_of(region)
    is_left = region[:, 2] <= left_edge
    is_right = region[:, 0] >= left_edge + _MIN_GUTTER_HEIGHTS * line_height
    crossing = np.sort(centers[~(is_left | is_right)])
    bounds = np.r_[-np.inf, crossing, np.inf]
    bands = np.searchsorted(crossing, centers)
    left_counts = np.bincount(bands[is_left], minlength=bounds.size - 1)
    right_counts = np.bincount(bands[is_right], minlength=bounds.size - 1)
    # A column beside nothing is no column: the shorter one decides.
    shorter = np.minimum(left_counts, right_counts)
    band = int(np.argmax(shorter))
    left = is_left & (bands == band)
    right = is_right & (bands == band)
    if (centers >= bounds[band + 1]).any():
        left = left & ~_is_loose(region, left, right, line_height)
        right = right & ~_is_loose(region, right, left, line_height)
    beside = left | right
    return _Gutter(
        count=int(shorter[band]),
        above=members[~beside & (centers <= bounds[band])],
        left=members[left],
        right=members[right],
        below=members[~beside & (centers > bounds[band])],
    )


def _is_loose(
    region: Boxes,
    column: NDArray[np.bool_],
    other: NDArray[np.bool_],
    line_height: float,
) -> NDArray[np.bool_]:
    """Tell which lines at a column's end belong to the text under both columns."""
    none = np.zeros(len(region), dtype=np.bool_)
    if not column.any() or not other.any():
        return none
    is_loose = column & (region[:, 1] >= region[other, 3].max() - line_height / 2)
    body = column & ~is_loose
    if not is_loose.any() or not body.any() or is_loose.sum() > _MAX_LOOSE_LINES:
        return none
    centers = centers_of(region)
    steps = np.diff(np.sort(centers[body]))
    usual_step = float(np.median(steps)) if steps.size else line_height
    step = float(centers[is_loose].min() - centers[body].max())
    return is_loose if step > _LOOSE_STEP_RATIO * usual_step else none


def _candidate_edges(region: Boxes, line_height: float) -> list[float]:
    """Return where a gutter may begin: at the right ends of lines, near ones taken together."""
    edges: list[float] = []
    for end in np.sort(region[:, 2])[::-1].tolist():
        # From the right, so that the edge lies right of all lines that end near it.
        if not edges or edges[-1] - end > line_height / 2:
            edges.append(end)
    return edges[::-1]


def _are_columns(left: Boxes, right: Boxes, line_height: float) -> bool:
    return _is_running_text(left, line_height) and _is_running_text(right, line_height)


def _is_running_text(lines: Boxes, line_height: float) -> bool:
    if len(lines) < _MIN_COLUMN_LINES:
        return False
    return float(np.median(_widths(lines))) >= _MIN_PROSE_WIDTH_HEIGHTS * line_height


def _is_table(left: Boxes, right: Boxes, line_height: float) -> bool:
    """Tell whether two stacks of lines are columns whose rows belong together."""
    fewer, more = sorted((np.sort(centers_of(left)), np.sort(centers_of(right))), key=len)
    following = np.searchsorted(more, fewer).clip(1, more.size - 1)
    distances = np.minimum(np.abs(fewer - more[following - 1]), np.abs(fewer - more[following]))
    aligned_share = float(np.mean(distances <= ALIGNED_HEIGHTS * line_height))
    if aligned_share < _TABLE_ALIGNED_SHARE:
        return False
    step = float(np.median(np.diff(fewer)))
    narrower = min(float(np.median(_widths(left))), float(np.median(_widths(right))))
    return (
        step > _TABLE_STEP_HEIGHTS * line_height
        or narrower < _MAX_CELL_WIDTH_HEIGHTS * line_height
        or max(_fill(left), _fill(right)) < _PROSE_FILL
    )


def _fill(lines: Boxes) -> float:
    """Return how long the usual line is, as a share of the long ones."""
    widths = _widths(lines)
    return float(np.median(widths) / max(float(np.quantile(widths, 0.9)), 1e-6))


def _widths(lines: Boxes) -> NDArray[np.float64]:
    widths: NDArray[np.float64] = lines[:, 2] - lines[:, 0]
    return widths
