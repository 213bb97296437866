"""Whether two stacks of lines are columns of running text or columns of a table."""

from typing import Final

import numpy as np

from workers.ocr.boxes import ALIGNED_HEIGHTS, Boxes, centers_of, mirrored, widths_of

MIN_COLUMN_LINES: Final = 3
"""Columns hold at least so many lines on each side of the gutter, …"""
# … and running text: lines this long in line heights. Shorter ones are cells of a table or a
# form, which are read row by row.
_MIN_PROSE_WIDTH_HEIGHTS: Final = 6.0
# But lists of shorter lines, down to this width in line heights, …
_MIN_LIST_WIDTH_HEIGHTS: Final = 2.5
# … are columns too where so many lines of each …
_MIN_LIST_LINES: Final = 5
# … begin at one edge, or so much after it, …
_MAX_HANG_HEIGHTS: Final = 2.0
_LIST_FLUSH_SHARE: Final = 0.8
# … and not nearly all stand in one row with one of the other: by chance a third of them does.
_MAX_LIST_ALIGNED_SHARE: Final = 0.85
# Bullets, hanging numbers and other marks are no wider, in line heights.
_MARK_HEIGHTS: Final = 1.0
# Two stacks of lines are columns of a table when most rows of the shorter one are aligned and …
_TABLE_ALIGNED_SHARE: Final = 0.7
# … the usual lines of both are this much shorter than their long ones and the short ones more, or …
_PROSE_FILL: Final = 0.88
_PROSE_SHORT_FILL: Final = 0.8
# … those of one are this short, in line heights, or …
_MAX_CELL_WIDTH_HEIGHTS: Final = 7.5
# … rows are this far apart, in line heights.
_TABLE_STEP_HEIGHTS: Final = 1.8


def are_columns(left: Boxes, right: Boxes, line_height: float, *, has_tables: bool) -> bool:
    """Tell whether the lines on both sides of a gutter are read one side after the other.

    Args:
        left: (N, 4) lines before the gutter, in the reading frame.
        right: (M, 4) lines after it.
        line_height: of the region.
        has_tables: see ``columns.cut_into_columns``.
    """
    if min(len(left), len(right)) < MIN_COLUMN_LINES:
        return False
    if not has_tables:
        return _narrower(left, right) >= _MIN_PROSE_WIDTH_HEIGHTS * line_height
    # What stands behind them, further columns or a table in one, says nothing about the gutter.
    left, right = _facing(left, line_height), mirrored(_facing(mirrored(right), line_height))
    aligned_share = _aligned_share(left, right, line_height)
    if _narrower(left, right) >= _MIN_PROSE_WIDTH_HEIGHTS * line_height:
        return not _is_table(left, right, line_height, aligned_share)
    return (
        _narrower(left, right) >= _MIN_LIST_WIDTH_HEIGHTS * line_height
        and aligned_share <= _MAX_LIST_ALIGNED_SHARE
        and _is_list(left, line_height)
        and _is_list(right, line_height)
    )


def _narrower(left: Boxes, right: Boxes) -> float:
    """Return the width of the usual line on the side where it is shorter."""
    return min(float(np.median(widths_of(left))), float(np.median(widths_of(right))))


def _is_list(lines: Boxes, line_height: float) -> bool:
    """Tell whether lines facing a gutter are those of an index or a list of points.

    They begin at one edge, follow-up lines a little after it, and follow each other closely.
    """
    if len(lines) < _MIN_LIST_LINES:
        return False
    offsets = lines[:, 0] - np.quantile(lines[:, 0], 0.1)
    steps = np.diff(np.sort(centers_of(lines)))
    return bool(
        np.mean(np.abs(offsets) <= _MAX_HANG_HEIGHTS * line_height) >= _LIST_FLUSH_SHARE
        and np.median(steps) <= _TABLE_STEP_HEIGHTS * line_height
    )


def _aligned_share(left: Boxes, right: Boxes, line_height: float) -> float:
    """Return how many lines of the side with fewer stand in one row with one of the other.

    Args:
        left: lines that face the gutter; those of several columns together stand at all heights.
        right: likewise.
        line_height: of the region.
    """
    fewer, more = sorted((np.sort(centers_of(left)), np.sort(centers_of(right))), key=len)
    following = np.searchsorted(more, fewer).clip(min(1, more.size - 1), more.size - 1)
    distances = np.minimum(np.abs(fewer - more[following - 1]), np.abs(fewer - more[following]))
    return float(np.mean(distances <= ALIGNED_HEIGHTS * line_height))


def _facing(lines: Boxes, line_height: float) -> Boxes:
    """Return the lines with no other one further along at their height, bullets apart."""
    is_long = widths_of(lines) > _MARK_HEIGHTS * line_height
    if is_long.sum() >= MIN_COLUMN_LINES:
        lines = lines[is_long]
    centers = centers_of(lines)
    is_behind = (
        (lines[:, np.newaxis, 1] < centers)
        & (centers < lines[:, np.newaxis, 3])
        & (lines[:, np.newaxis, 0] >= lines[:, 2])
    )
    return lines[~is_behind.any(axis=0)]


def _is_table(left: Boxes, right: Boxes, line_height: float, aligned_share: float) -> bool:
    """Tell whether two stacks of lines are columns whose rows belong together."""
    if aligned_share < _TABLE_ALIGNED_SHARE:
        return False
    steps = np.diff(np.sort(centers_of(min(left, right, key=len))))
    return (
        # Where one line faces the gutter alone, there is no step.
        (steps.size > 0 and float(np.median(steps)) > _TABLE_STEP_HEIGHTS * line_height)
        or _narrower(left, right) < _MAX_CELL_WIDTH_HEIGHTS * line_height
        or not (_is_filled(left) or _is_filled(right))
    )


def _is_filled(lines: Boxes) -> bool:
    """Tell whether lines are as long as those of running text, which mostly fills its column."""
    widths = widths_of(lines)
    short, usual, long = np.quantile(widths, (0.25, 0.5, 0.9))
    return bool(usual >= _PROSE_FILL * long or short >= _PROSE_SHORT_FILL * long)
