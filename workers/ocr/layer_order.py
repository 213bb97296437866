"""The order of a text layer's lines: the file's own, unless it wanders over the page.

Programs that set text mostly write it in the order of reading, and know what no geometry tells:
which cell belongs to which row, where a sidebar interrupts. Others write all bold words first, or
go through two columns line by line. Those give themselves away by the way that the eye would have
to travel from line to line. Who wants the file's order even then asks for it.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.modes import TextOrder
from workers.ocr.order import order_lines, reading_angle_deg
from workers.ocr.result import Block, TextLine
from workers.ocr.right_to_left import is_right_to_left
from workers.ocr.text_layer import TextLayer

# The order of the file may take this much longer a way than the one by geometry. Measured on 26
# pages: footers written first and cells of forms 0.8 to 2.8; three columns written line by line 12.
_MAX_DETOUR: Final = 4.0
# Or it goes back so often, as a share of the steps, by more than so many line heights, and so
# many times more often than the one by geometry. A file in no order at all goes back at half of
# its steps; on 25 pages of sound files, forms among them, at most 0.04.
_MAX_BACK_SHARE: Final = 0.25
_BACK_HEIGHTS: Final = 1.5
_BACK_RATIO: Final = 2.0
# The next line of a column or a cell is at most so many line heights below.
_NEXT_HEIGHTS: Final = 3.0
# Below it, one jump decides, which says nothing.
_MIN_LINES: Final = 8
# Above it the file's order stands: geometry compares all lines with all others, and a layer may
# have as many lines as characters.
_MAX_LINES: Final = 3_000


def order_layer(
    lines: Sequence[TextLine], block_numbers: Sequence[int], text_order: TextOrder = "reading"
) -> TextLayer:
    """Put lines into order and into blocks.

    Args:
        lines: in the order of the file.
        block_numbers: of each line, equal for neighbors in one block.
        text_order: ``file`` keeps the order and the blocks of the file in any case.
    """
    if not lines:
        return TextLayer()
    may_reorder = text_order == "reading" and _MIN_LINES <= len(lines) <= _MAX_LINES
    if may_reorder and (better := _blocks_by_geometry(lines)):
        return _layer(lines, better)
    blocks: list[list[int]] = []
    for position, number in enumerate(block_numbers):
        if blocks and block_numbers[position - 1] == number:
            blocks[-1].append(position)
        else:
            blocks.append([position])
    return _layer(lines, blocks)


def _blocks_by_geometry(lines: Sequence[TextLine]) -> tuple[tuple[int, ...], ...]:
    """Return blocks of positions where geometry knows better than the file, none where not."""
    starts = _starts(lines)
    travel, back_share = _travel(starts), _back_share(lines)
    is_detour = travel > _MAX_DETOUR * _least_travel(starts)
    if not is_detour and back_share <= _MAX_BACK_SHARE:
        return ()
    quads = [line.quad for line in lines]
    from_right = is_right_to_left("".join(line.text for line in lines))
    order = order_lines(quads, from_right=from_right)
    ordered = list(order.lines)
    is_shorter = travel > _MAX_DETOUR * _travel(starts[ordered])
    is_steadier = back_share > max(
        _MAX_BACK_SHARE, _BACK_RATIO * _back_share([lines[position] for position in ordered])
    )
    return order.blocks if is_shorter or is_steadier else ()


def _back_share(lines: Sequence[TextLine]) -> float:
    """Return how many steps from line to line go against the direction in which lines follow.

    One that follows a step to the line below is no sign of disorder: a column or a cell has ended,
    and the next one begins beside it.
    """
    angle = math.radians(reading_angle_deg([line.quad for line in lines]))
    steps = np.diff(_starts(lines) @ (-math.sin(angle), math.cos(angle)))
    reach = np.array([line.quad.corners for line in lines]) @ (math.cos(angle), math.sin(angle))
    is_over = (reach[1:].min(axis=1) < reach[:-1].max(axis=1)) & (
        reach[1:].max(axis=1) > reach[:-1].min(axis=1)
    )
    height = float(np.median([line.quad.height for line in lines]))
    is_to_next = is_over & (steps > 0) & (steps <= _NEXT_HEIGHTS * height)
    ends_stack = np.r_[False, is_to_next[:-1]]
    return float(np.mean((steps < -_BACK_HEIGHTS * height) & ~ends_stack))


def insert_blocks(layer: TextLayer, added: Sequence[Sequence[TextLine]]) -> TextLayer:
    """Put recognized lines where the eye has the shortest way to them and on.

    Args:
        layer: in the order that it is to keep.
        added: blocks of lines that stay together, in reading order.

    Returns:
        A layer with all lines; the order of either side is kept.
    """
    blocks = [[layer.lines[position] for position in block.lines] for block in layer.blocks]
    lowest = 0
    for block in added:
        starts = [_starts(each) for each in blocks]
        ways = [_detour(starts, place, _starts(block)) for place in range(lowest, len(blocks) + 1)]
        place = lowest + int(np.argmin(ways))
        blocks.insert(place, list(block))
        lowest = place + 1
    lines = [line for block in blocks for line in block]
    stops = np.cumsum([len(block) for block in blocks]).tolist()
    return TextLayer(
        tuple(lines),
        tuple(
            Block(tuple(range(stop - len(block), stop)))
            for block, stop in zip(blocks, stops, strict=True)
        ),
    )


def _detour(starts: Sequence[NDArray[np.float64]], place: int, added: NDArray[np.float64]) -> float:
    """Return by how much the way grows when a block is put before the block at ``place``."""
    before = starts[place - 1][-1] if place else None
    after = starts[place][0] if place < len(starts) else None
    way = 0.0
    if before is not None:
        way += float(np.hypot(*(added[0] - before)))
    if after is not None:
        way += float(np.hypot(*(after - added[-1])))
    if before is not None and after is not None:
        way -= float(np.hypot(*(after - before)))
    # Nothing is read before what stands above it, nor after what stands below.
    if before is None and after is not None and added[0][1] > after[1]:
        way += float(np.hypot(*(after - added[-1])))
    return way


def _starts(lines: Sequence[TextLine]) -> NDArray[np.float64]:
    """(N, 2), the corners where reading starts."""
    return np.array([line.quad.corners[0] for line in lines], dtype=np.float64)


def _travel(starts: NDArray[np.float64]) -> float:
    return float(np.hypot(*np.diff(starts, axis=0).T).sum())


def _least_travel(starts: NDArray[np.float64]) -> float:
    """Return what no order can be shorter than: from each line at least to its nearest."""
    distances = np.hypot(*(starts[:, None] - starts[None]).transpose(2, 0, 1))
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    return float(nearest.sum() - nearest.max())


def _layer(lines: Sequence[TextLine], blocks: Sequence[Sequence[int]]) -> TextLayer:
    first = 0
    numbered = []
    for block in blocks:
        numbered.append(Block(tuple(range(first, first + len(block)))))
        first += len(block)
    return TextLayer(
        tuple(lines[position] for block in blocks for position in block), tuple(numbered)
    )
