"""Cutting a page into columns of running text.

Boxes and members are those of ``workers.ocr.boxes``.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.boxes import (
    Boxes,
    Members,
    centers_of,
    heights_of,
    widths_of,
)
from workers.ocr.cells import wrapped_cells
from workers.ocr.running_text import MIN_COLUMN_LINES, are_columns

# A page's header or footer is one row, this far from the rest, in line heights, …
_MARGIN_GAP_HEIGHTS: Final = 1.2
# … in no larger type, up to this factor, …
_MARGIN_HEIGHT_RATIO: Final = 1.3
# … and each of its parts is at most this wide, as a share of the page's text.
_MARGIN_WIDTH_SHARE: Final = 0.6

# A gutter between columns is at least this wide, in line heights. Detected lines are grown by a
# third of their height at both ends, so that little is left of a narrow one.
_MIN_GUTTER_HEIGHTS: Final = 0.25
# Lines that stick out below the other column, so much further from their own than its lines are
# from each other, and so few, head what follows under both.
_LOOSE_STEP_RATIO: Final = 1.4
_MAX_LOOSE_LINES: Final = 3
# No gutter parts so many rows of cells that hold several lines each, up to so many, where more
# than this share of the lines beside it stands in such cells.
_MIN_CELL_ROWS: Final = 2
_MAX_CELL_LINES: Final = 2.5
_MAX_SHARE_IN_CELLS: Final = 0.5
# A strip without any line, so high in line heights, ends all columns: a picture over all of them.
_MIN_STRIP_HEIGHTS: Final = 3.0
# An inset is at most this much of what it stands between, in lines.
_MAX_INSET_SHARE: Final = 0.34


@dataclass(frozen=True, slots=True)
class _Gutter:
    """Lines beside a gutter and outside its ends; ``count`` of the side with fewer."""

    count: int
    above: Members
    left: Members
    inset: Members
    right: Members
    below: Members

    @property
    def rank(self) -> tuple[int, int]:
        """Of two gutters the one of higher rank is real: more lines beside it, on both sides."""
        return self.count, self.left.size + self.right.size


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
    bands = _bands_between_strips(boxes, members) if has_tables else []
    parts = (gutter.above, gutter.left, gutter.inset, gutter.right, gutter.below)
    return [
        column
        for part in (bands if len(bands) > 1 else parts)
        if part.size
        for column in cut_into_columns(boxes, part, has_tables=has_tables)
    ]


def _bands_between_strips(boxes: Boxes, members: Members) -> list[Members]:
    """Cut where a high blank strip runs through all columns."""
    ordered = members[np.argsort(boxes[members, 1], kind="stable")]
    lines = boxes[ordered]
    room = lines[1:, 1] - np.maximum.accumulate(lines[:, 3])[:-1]
    line_height = float(np.median(heights_of(lines)))
    cuts = np.flatnonzero(room > _MIN_STRIP_HEIGHTS * line_height) + 1
    return [np.sort(part) for part in np.split(ordered, cuts)]


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
    if members.size <= 2 * MIN_COLUMN_LINES:
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
    is_short = widths_of(row).max() <= _MARGIN_WIDTH_SHARE * text_width
    gap = float(rest[:, 1].min() - row[:, 3].max())
    is_apart = gap > _MARGIN_GAP_HEIGHTS * line_height
    return members[is_row] if is_small and is_short and is_apart else none


def _best_gutter(boxes: Boxes, members: Members, *, has_tables: bool) -> _Gutter | None:
    """Find the gutter with the most lines beside it.

    A gutter is a strip that no line crosses between two lines that do, or the region's ends. So
    a title over two columns, or a figure's caption between them, ends it.
    """
    if members.size < 2 * MIN_COLUMN_LINES:
        return None
    line_height = float(np.median(heights_of(boxes[members])))
    best: _Gutter | None = None
    cells = _lines_in_cells(boxes, members) if has_tables else members[:0]
    starts, stops = np.sort(boxes[members, 0]), np.sort(boxes[members, 2])
    for left_edge in _candidate_edges(boxes[members], line_height):
        # Cheaply: the lines on either side of the whole strip, wherever it ends.
        right_edge = left_edge + _MIN_GUTTER_HEIGHTS * line_height
        most = min(
            int(np.searchsorted(stops, left_edge, side="right")),
            int(members.size - np.searchsorted(starts, right_edge)),
        )
        if most < MIN_COLUMN_LINES or (best is not None and most < best.count):
            continue
        gutter = _gutter_at(boxes, members, left_edge, line_height)
        if best is not None and gutter.rank <= best.rank:
            continue
        beside = np.r_[gutter.left, gutter.right]
        if np.isin(beside, cells).sum() > _MAX_SHARE_IN_CELLS * beside.size:
            continue
        left, right = boxes[gutter.left], boxes[gutter.right]
        if are_columns(left, right, line_height, has_tables=has_tables):
            best = gutter
    return best


def _lines_in_cells(boxes: Boxes, members: Members) -> Members:
    """Return the lines in cells of a table that hold several: no gutter may part its rows."""
    rows = wrapped_cells(boxes, members)
    cells = [cell for row in rows for cell in row]
    if len(rows) < _MIN_CELL_ROWS or np.mean([len(cell) for cell in cells]) > _MAX_CELL_LINES:
        return members[:0]
    return np.array([line for cell in cells for line in cell], dtype=np.intp)


def _gutter_at(boxes: Boxes, members: Members, left_edge: float, line_height: float) -> _Gutter:
    region = boxes[members]
    centers = centers_of(region)
    is_left = region[:, 2] <= left_edge
    is_right = region[:, 0] >= left_edge + _MIN_GUTTER_HEIGHTS * line_height
    is_inset = _is_inset(region, is_left, is_right)
    crossing = np.sort(centers[~(is_left | is_right | is_inset)])
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
    inset = is_inset & (bands == band)
    beside = left | right | inset
    return _Gutter(
        count=int(shorter[band]),
        above=members[~beside & (centers <= bounds[band])],
        left=members[left],
        inset=members[inset],
        right=members[right],
        below=members[~beside & (centers > bounds[band])],
    )


def _is_inset(
    region: Boxes, is_left: NDArray[np.bool_], is_right: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which lines stand in a gutter with room made for them on both of its sides.

    A quotation in larger type is set so. It does not end the columns, which go on beside it.
    """
    none = np.zeros(len(region), dtype=np.bool_)
    centers, crossing = centers_of(region), ~(is_left | is_right)
    if not crossing.any() or not is_left.any() or not is_right.any():
        return none
    is_inset = none.copy()
    is_inset[crossing] = _have_room(region[crossing], region[is_left], region[is_right])
    if not is_inset.any() or is_inset.sum() > _MAX_INSET_SHARE * min(is_left.sum(), is_right.sum()):
        return none
    inset = region[is_inset]
    is_among = (centers > inset[:, 1].min()) & (centers < inset[:, 3].max())
    # The middle one of three columns has others beside it too, but these never reach into it.
    reaches = (
        region[is_left, 2].max() > inset[:, 0].min()
        and region[is_right, 0].min() < inset[:, 2].max()
    )
    return is_inset if reaches and not (is_among & crossing & ~is_inset).any() else none


def _have_room(lines: Boxes, left: Boxes, right: Boxes) -> NDArray[np.bool_]:
    """Tell which lines have others beside them on both sides, and none that reaches into them."""
    top, bottom = lines[:, 1, np.newaxis], lines[:, 3, np.newaxis]
    is_beside = [(side[:, 1] < bottom) & (side[:, 3] > top) for side in (left, right)]
    last_stop = np.where(is_beside[0], left[:, 2], -np.inf).max(axis=1)
    first_start = np.where(is_beside[1], right[:, 0], np.inf).min(axis=1)
    has_both = np.isfinite(last_stop) & np.isfinite(first_start)
    fits: NDArray[np.bool_] = has_both & (last_stop <= lines[:, 0]) & (first_start >= lines[:, 2])
    return fits


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
