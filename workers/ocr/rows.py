"""Reading a column row by row, and cutting it into blocks.

What is stacked beside other text without standing in its rows, such as a note in the margin, the
label of a form's section or a cell whose text goes over several lines, is kept together: such a
stack is read where it begins.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.boxes import ALIGNED_HEIGHTS, Boxes, Members, centers_of, heights_of
from workers.ocr.cells import wrapped_cells

# The next line of a stack begins or is centered this near below the last one, in line heights, …
_STACK_OFFSET_HEIGHTS: Final = 0.6
# … is of the same size up to this factor, and at most this far down.
_STACK_HEIGHT_RATIO: Final = 1.4
_STACK_STEP_HEIGHTS: Final = 1.6
# Two lines beside a third that stands between them are no stack.
_MIN_STACK_LINES: Final = 3
# Text beside a stack that mostly stands in its rows makes it a column of a table.
_ROW_SHARE: Final = 0.6
# A new block begins where the step to the next line is this much more than the usual step …
_BLOCK_STEP_RATIO: Final = 1.4
# … where the line height changes by this factor …
_BLOCK_HEIGHT_RATIO: Final = 1.6
# … or where a line is indented by so many line heights and the next one is not.
_INDENT_HEIGHTS: Final = (0.7, 5.0)
_FLUSH_HEIGHTS: Final = 0.4

_Unit = list[int]


def column_blocks(boxes: Boxes, column: Members) -> list[list[int]]:
    """Read a column row by row and cut it into blocks.

    Args:
        boxes: (N, 4) of all lines, in the reading frame.
        column: positions of its lines.

    Returns:
        For each block the positions of its lines, in reading order.
    """
    blocks: list[list[int]] = []
    rows: list[list[int]] = []
    for row in _rows(boxes, _units(boxes, column)):
        is_new_row = True
        for unit in row:
            if len(unit) > 1:
                blocks.extend([*_paragraphs(boxes, rows), unit])
                rows = []
                is_new_row = True
            elif is_new_row:
                rows.append(unit)
                is_new_row = False
            else:
                rows[-1].extend(unit)
    blocks.extend(_paragraphs(boxes, rows))
    return blocks


def _units(boxes: Boxes, column: Members) -> list[_Unit]:
    """Return what is read in one go: single lines, and stacks that stand in nobody's rows."""
    cells = [cell for row in wrapped_cells(boxes, column) for cell in row]
    column = np.setdiff1d(column, [line for cell in cells for line in cell])
    lines = boxes[column]
    centers, heights = centers_of(lines), heights_of(lines)
    reach = ALIGNED_HEIGHTS * np.minimum(heights[:, np.newaxis], heights)
    aligned = np.abs(centers[:, np.newaxis] - centers) <= reach
    np.fill_diagonal(aligned, val=False)
    units: list[_Unit] = cells
    for stack in _stacks(lines, aligned):
        if len(stack) > 1 and _stands_alone(lines, aligned, stack):
            units.append([int(column[line]) for line in stack])
        else:
            units.extend([int(column[line])] for line in stack)
    return units


def _stacks(lines: Boxes, aligned: NDArray[np.bool_]) -> list[list[int]]:
    """Chain lines that follow each other closely; each line is in one chain."""
    centers, heights = centers_of(lines), heights_of(lines)
    # A line that stands in a row begun to its left is the first of its cell.
    starts_cell = np.any(
        aligned & (lines[:, 2] <= lines[:, 0][:, np.newaxis]), axis=1, keepdims=True
    )
    chains: list[list[int]] = []
    open_chains: list[list[int]] = []
    for line in np.argsort(centers, kind="stable").tolist():
        height = float(heights[line])
        open_chains = [
            chain
            for chain in open_chains
            if centers[line] - centers[chain[-1]] <= 2 * _STACK_STEP_HEIGHTS * height
        ]
        above = [
            chain
            for chain in open_chains
            if lines[chain[-1], 2] > lines[line, 0] and lines[chain[-1], 0] < lines[line, 2]
        ]
        follows = (
            len(above) == 1 and not starts_cell[line, 0] and _follows(lines, above[0][-1], line)
        )
        for chain in above:
            open_chains.remove(chain)  # by identity of content: chains are disjoint
        if follows:
            above[0].append(line)
            open_chains.append(above[0])
        else:
            chains.append([line])
            open_chains.append(chains[-1])
    return chains


def _follows(lines: Boxes, upper: int, lower: int) -> bool:
    """Tell whether one line continues the stack of another."""
    centers, heights = centers_of(lines), heights_of(lines)
    height = float(max(heights[upper], heights[lower]))
    ratio = heights[upper] / max(heights[lower], 1e-6)
    step = centers[lower] - centers[upper]
    offset = min(
        abs(lines[upper, 0] - lines[lower, 0]),
        abs(lines[upper, [0, 2]].mean() - lines[lower, [0, 2]].mean()),
    )
    return bool(
        1 / _STACK_HEIGHT_RATIO < ratio < _STACK_HEIGHT_RATIO
        and height / 2 < step <= _STACK_STEP_HEIGHTS * height
        and offset <= _STACK_OFFSET_HEIGHTS * height
    )


def _stands_alone(lines: Boxes, aligned: NDArray[np.bool_], stack: list[int]) -> bool:
    """Tell whether a stack has text beside it that does not stand in its rows."""
    centers = centers_of(lines)
    is_beside = (centers >= lines[stack[0], 1]) & (centers <= lines[stack[-1], 3])
    is_beside[stack] = False
    if not is_beside.any():
        return False
    start, stop = lines[stack, 0].min(), lines[stack, 2].max()
    if ((lines[is_beside, 0] < stop) & (lines[is_beside, 2] > start)).any():
        return False  # a line in two parts, over lines in one
    in_rows = aligned[stack][:, is_beside]
    if not in_rows[1:].any() and (in_rows[0].any() or len(stack) >= _MIN_STACK_LINES):
        return True
    if len(stack) < _MIN_STACK_LINES:
        return False
    return bool(max(in_rows.any(axis=0).mean(), in_rows.any(axis=1).mean()) < _ROW_SHARE)


def _rows(boxes: Boxes, units: list[_Unit]) -> list[list[_Unit]]:
    """Group units into rows by their first lines, from the top; a row runs along the lines."""
    centers, heights = centers_of(boxes), heights_of(boxes)
    rows: list[list[_Unit]] = []
    for unit in sorted(units, key=lambda unit: (float(centers[unit[0]]), float(boxes[unit[0], 0]))):
        line = unit[0]
        if rows:
            firsts = [other[0] for other in rows[-1]]
            reach = min(float(heights[line]), float(heights[firsts].mean())) / 2
            if centers[line] - centers[firsts].mean() < reach:
                rows[-1].append(unit)
                continue
        rows.append([unit])
    return [sorted(row, key=lambda unit: float(boxes[unit[0], 0])) for row in rows]


def _paragraphs(boxes: Boxes, rows: list[list[int]]) -> list[list[int]]:
    """Cut rows where the step, the line height or the indentation says so."""
    if not rows:
        return []
    row_boxes = np.array([
        np.r_[boxes[row, :2].min(axis=0), boxes[row, 2:].max(axis=0)] for row in rows
    ])
    heights = np.array([float(np.median(heights_of(boxes[row]))) for row in rows])
    steps = np.diff(centers_of(row_boxes))
    usual_step = float(np.median(steps)) if steps.size else 0.0
    blocks = [list(rows[0])]
    for index in range(1, len(rows)):
        ratio = heights[index] / max(heights[index - 1], 1e-6)
        is_apart = steps[index - 1] > _BLOCK_STEP_RATIO * max(
            min(usual_step, 2 * heights[index]), heights[index]
        )
        is_other_size = not 1 / _BLOCK_HEIGHT_RATIO < ratio < _BLOCK_HEIGHT_RATIO
        if is_apart or is_other_size or _is_indented(row_boxes[:, 0], heights[index], index):
            blocks.append([])
        blocks[-1].extend(rows[index])
    return blocks


def _is_indented(starts: NDArray[np.float64], height: float, index: int) -> bool:
    """Tell whether a row begins a paragraph by indentation: its neighbors begin at one edge."""
    if index + 1 >= starts.size:
        return False
    before, here, after = starts[index - 1 : index + 2]
    least, most = _INDENT_HEIGHTS
    return bool(
        abs(before - after) <= _FLUSH_HEIGHTS * height
        and least * height <= here - after <= most * height
    )
