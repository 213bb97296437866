"""Cells of several lines that stand side by side: rows of a table, captions under pictures.

Each line of such a cell stands in one row with lines of its neighbors, so rows alone would go
through all cells at once. What gives the cells away is that their text is wrapped: every line but
the last one fills its cell, which a list of single values does not.

Boxes and members are those of ``workers.ocr.boxes``.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.boxes import Boxes, Members, centers_of, heights_of

# A row of cells ends where the step to the next line is this much more than inside cells, …
_ROW_STEP_RATIO: Final = 1.3
# … where steps are at most this many line heights.
_MAX_INNER_STEP_HEIGHTS: Final = 1.6
# … and a blank strip of this many runs from side to side.
_MIN_STRIP_HEIGHTS: Final = 0.1
# Cells of one row begin at one height, up to this much of a line height.
_TOP_HEIGHTS: Final = 0.5
# Room between two cells, in line heights; detected lines are grown, so that they may overlap.
_MIN_ROOM_HEIGHTS: Final = -0.3
# Text is wrapped when so many of the lines that are not the last of their cell …
_WRAPPED_SHARE: Final = 0.8
# … are at least this long, as a share of the column, which …
_FULL_SHARE: Final = 0.7
# … is at least this wide, in line heights; figures and dates fill narrow columns without wrapping.
_MIN_WRAPPED_WIDTH_HEIGHTS: Final = 5.0


def wrapped_cells(boxes: Boxes, members: Members) -> list[list[list[int]]]:
    """Find cells of several lines.

    Args:
        boxes: (N, 4) of all lines, in the reading frame.
        members: positions of the lines to look at.

    Returns:
        For each row of cells, from the top, its cells: positions of lines from the top. What
        belongs to no such cell is in none of them.
    """
    rows: list[list[list[int]]] = []
    run: list[Members] = []
    for band in [*_bands(boxes, members), members[:0]]:
        columns = _columns_of(boxes[band])
        if band.size and columns.max() > 0:
            run.append(band)
            continue
        rows.extend(_cells_of_run(boxes, run))
        run = []
    return rows


def _bands(boxes: Boxes, members: Members) -> list[Members]:
    """Cut lines where a blank strip runs through all of them, wider than steps inside cells."""
    if members.size < 2:  # noqa: PLR2004 - nothing to cut
        return [members] if members.size else []
    ordered = members[np.argsort(centers_of(boxes[members]), kind="stable")]
    lines = boxes[ordered]
    centers, line_height = centers_of(lines), float(np.median(heights_of(lines)))
    steps = np.diff(centers)
    inner = steps[
        (steps > _TOP_HEIGHTS * line_height) & (steps <= _MAX_INNER_STEP_HEIGHTS * line_height)
    ]
    usual = float(np.quantile(inner, 0.25)) if inner.size else line_height
    room = lines[1:, 1] - np.maximum.accumulate(lines[:-1, 3])
    cuts = (
        np.flatnonzero(
            (steps > _ROW_STEP_RATIO * usual) & (room > _MIN_STRIP_HEIGHTS * line_height)
        )
        + 1
    )
    return [np.asarray(part, dtype=np.intp) for part in np.split(ordered, cuts)]


def _columns_of(lines: Boxes) -> NDArray[np.intp]:
    """Number the columns that lines stand in: (N,) from 0, parted by strips without any line."""
    columns = np.zeros(len(lines), dtype=np.intp)
    if not len(lines):
        return columns
    room = _MIN_ROOM_HEIGHTS * float(np.median(heights_of(lines)))
    order = np.argsort(lines[:, 0], kind="stable")
    reach = np.maximum.accumulate(lines[order, 2])
    columns[order] = np.r_[0, np.cumsum(lines[order[1:], 0] - reach[:-1] >= room)]
    return columns


def _cells_of_run(boxes: Boxes, run: list[Members]) -> list[list[list[int]]]:
    """Return the cells of bands that follow each other, none where no text is wrapped."""
    if not run:
        return []
    members = np.concatenate(run)
    numbers = dict(zip(members.tolist(), _columns_of(boxes[members]).tolist(), strict=True))
    widths = _column_widths(boxes, numbers)
    line_height = float(np.median(heights_of(boxes[members])))
    rows = []
    is_full: list[bool] = []
    for band in run:
        cells = _cells_of_band(boxes, band, numbers)
        if len(cells) == 1 or not _begin_together(boxes, cells):
            continue
        shares = _line_shares(boxes, cells, widths, line_height)
        if shares is not None and all(_is_close(boxes, cell) for cell in cells):
            rows.append(cells)
            is_full.extend(share >= _FULL_SHARE for share in shares)
    return rows if is_full and float(np.mean(is_full)) >= _WRAPPED_SHARE else []


def _column_widths(boxes: Boxes, numbers: dict[int, int]) -> dict[int, float]:
    """Return for each line the width of the column that it stands in."""
    columns: dict[int, list[int]] = {}
    for line, number in numbers.items():
        columns.setdefault(number, []).append(line)
    return {
        line: float(boxes[lines, 2].max() - boxes[lines, 0].min())
        for lines in columns.values()
        for line in lines
    }


def _line_shares(
    boxes: Boxes, cells: list[list[int]], widths: dict[int, float], line_height: float
) -> list[float] | None:
    """Return which share of its column each line fills that another one of its cell follows.

    None where a narrow column has such lines: these are values, each of a row of its own.
    """
    uppers = [upper for cell in cells for upper in cell[:-1]]
    if any(widths[line] < _MIN_WRAPPED_WIDTH_HEIGHTS * line_height for line in uppers):
        return None
    return [float(boxes[line, 2] - boxes[line, 0]) / widths[line] for line in uppers]


def _cells_of_band(boxes: Boxes, band: Members, numbers: dict[int, int]) -> list[list[int]]:
    cells: dict[int, list[int]] = {}
    for line in band.tolist():  # from the top
        cells.setdefault(numbers[line], []).append(line)
    return [_along_rows(boxes, cells[number]) for number in sorted(cells)]


def _along_rows(boxes: Boxes, cell: list[int]) -> list[int]:
    """Put parts of one line, which stand at one height, in their order."""
    rows = [cell[:1]]
    for line in cell[1:]:
        first = rows[-1][0]
        step = centers_of(boxes[[first, line]])
        if step[1] - step[0] < _TOP_HEIGHTS * float(heights_of(boxes[[first, line]]).min()):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda part: float(boxes[part, 0]))]


def _begin_together(boxes: Boxes, row: list[list[int]]) -> bool:
    firsts = boxes[[cell[0] for cell in row]]
    return bool(np.ptp(centers_of(firsts)) <= _TOP_HEIGHTS * float(np.median(heights_of(firsts))))


def _is_close(boxes: Boxes, cell: list[int]) -> bool:
    """Tell whether a cell's lines follow each other without an empty one between."""
    lines = boxes[cell]
    most = _MAX_INNER_STEP_HEIGHTS * float(np.median(heights_of(lines)))
    return bool((np.diff(centers_of(lines)) <= most).all())
