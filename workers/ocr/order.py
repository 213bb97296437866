"""Reading order of text lines, and the blocks that they form.

Everything happens in the reading frame: the page turned so that most lines read to the right.
For vertical Japanese, whose lines read downwards and follow each other to the left, that turn
makes columns of it that behave as lines do, so one method serves both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.boxes import Boxes, Members, centers_of, heights_of, mirrored
from workers.ocr.columns import cut_into_columns, split_off_margins
from workers.ocr.geometry import Quad, rotate_points
from workers.ocr.rows import column_blocks

# A line is crosswise when it is this much longer across the reading direction than along it.
_CROSSWISE_RATIO: Final = 1.8
# Ruby is at most this high, in heights of its line.
_MAX_RUBY_SHARE: Final = 0.6


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


def order_lines(quads: Sequence[Quad], *, from_right: bool = False) -> ReadingOrder:
    """Find the reading order of a page's lines.

    Columns of running text are read one after the other, all else from the top, and within a row
    along the reading direction.

    Args:
        quads: of the lines, page pixels.
        from_right: the text is Arabic or Hebrew, so that columns and cells follow each other to
            the left.

    Returns:
        The order, with no block for no line.
    """
    if not quads:
        return ReadingOrder(blocks=(), angle_deg=0.0)
    angle_deg = reading_angle_deg(quads)
    boxes = _reading_frame_boxes(quads, angle_deg)
    is_vertical = abs(abs(angle_deg) - 90) < 45  # noqa: PLR2004  nearer to a quarter turn
    if from_right and not is_vertical:
        boxes = mirrored(boxes)
    # Sorted first, so that the order in which lines were found decides nothing.
    found = np.lexsort((*boxes.T, centers_of(boxes)))
    boxes = boxes[found]
    hosts = _ruby_hosts(boxes) if is_vertical else {}
    bodies = np.array([line for line in range(len(quads)) if line not in hosts], dtype=np.intp)
    blocks = [
        tuple(int(found[line]) for body in block for line in (body, *_ruby_of(hosts, body, boxes)))
        for block in (_downward_blocks if is_vertical else _page_blocks)(boxes, bodies)
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


def _reading_frame_boxes(quads: Sequence[Quad], angle_deg: float) -> Boxes:
    corners = rotate_points(np.stack([quad.corners for quad in quads]), -angle_deg)
    return np.concatenate((corners.min(axis=1), corners.max(axis=1)), axis=1)


def _page_blocks(boxes: Boxes, lines: Members) -> list[list[int]]:
    """Return the blocks of a page whose lines read along its main direction."""
    header, body, footer = split_off_margins(boxes, lines)
    parts = (header, *cut_into_columns(boxes, body, has_tables=True), footer)
    return [block for part in parts if part.size for block in column_blocks(boxes, part)]


def _downward_blocks(boxes: Boxes, lines: Members) -> list[list[int]]:
    """Return the blocks of a page of downward writing.

    Titles, captions, running heads and page numbers are set horizontally on such pages; in the
    reading frame of the rest they are neither lines nor columns. Those above the middle of the
    text are read before it, the others after it, in a frame of their own.
    """
    is_above, is_below = _crosswise_lines(boxes[lines])
    crossed = np.stack((-boxes[:, 3], boxes[:, 0], -boxes[:, 1], boxes[:, 2]), axis=1)
    columns = cut_into_columns(boxes, lines[~(is_above | is_below)], has_tables=False)
    parts = [(crossed, lines[is_above]), *((boxes, column) for column in columns)]
    parts.append((crossed, lines[is_below]))
    return [block for frame, part in parts if part.size for block in column_blocks(frame, part)]


def _crosswise_lines(region: Boxes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which lines run across the others, above the middle of these and below it."""
    lengths, heights = region[:, 2] - region[:, 0], heights_of(region)
    along = (region[:, 0] + region[:, 2]) / 2
    is_line = lengths > _CROSSWISE_RATIO * heights
    if not is_line.any():
        none = np.zeros(len(region), dtype=np.bool_)
        return none, none
    # Page numbers are nearly square, as the last character of a sentence is; they stand outside.
    is_outside = (along < region[is_line, 0].min()) | (along > region[is_line, 2].max())
    is_crosswise = (heights > _CROSSWISE_RATIO * lengths) | (~is_line & is_outside)
    is_above = along < np.median(along[is_line])
    return is_crosswise & is_above, is_crosswise & ~is_above


def _ruby_hosts(boxes: Boxes) -> dict[int, int]:
    """Find the small readings that stand beside the lines they belong to.

    Ruby (furigana) runs along a line of downward writing, on its right: in the reading frame it
    comes just before the line. It is read after it.

    Returns:
        For each line of ruby the line that it belongs to.
    """
    heights = heights_of(boxes)
    hosts: dict[int, int] = {}
    for line, (start, top, stop, bottom) in enumerate(boxes.tolist()):
        height = bottom - top
        slack = height / 2
        is_host = (
            (heights * _MAX_RUBY_SHARE >= height)
            & (boxes[:, 0] <= start + slack)
            & (boxes[:, 2] >= stop - slack)
            & (np.abs(boxes[:, 1] - bottom) <= slack)
        )
        if is_host.any():
            candidates = np.flatnonzero(is_host)
            hosts[line] = int(candidates[np.argmin(np.abs(boxes[candidates, 1] - bottom))])
    return {ruby: host for ruby, host in hosts.items() if host not in hosts}


def _ruby_of(hosts: Mapping[int, int], body: int, boxes: Boxes) -> list[int]:
    """Return a line's ruby in reading order."""
    ruby = [line for line, host in hosts.items() if host == body]
    return sorted(ruby, key=lambda line: float(boxes[line, 0]))
