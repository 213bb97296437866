"""Lines that MuPDF leaves in pieces, put together.

These are vertical lines whose characters are set one by one, and lines that change between
right-to-left and left-to-right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from workers.ocr.geometry import Box
from workers.ocr.layer_lines import AXIS_TOLERANCE, PdfLine
from workers.ocr.right_to_left import is_right_to_left, reading_sequence
from workers.ocr.scripts import is_spaced_script

# Pieces of a line are so far apart at most, in type sizes.
_MAX_PIECE_GAP: Final = 0.8
# And share this much of their height.
_MIN_PIECE_OVERLAP: Final = 0.5
# Characters of a horizontal font that are stacked this often are a vertical line.
_MIN_STACKED: Final = 3


def join_pieces(lines: Sequence[PdfLine]) -> list[PdfLine]:
    """Put together what stands on one line and reads as one.

    Args:
        lines: in the order of the file.
    """
    joined: list[PdfLine] = []
    for line in _stacked_turned(lines):
        if joined and _continues(joined[-1], line):
            joined[-1] = replace(joined[-1], glyphs=joined[-1].glyphs + line.glyphs)
        else:
            joined.append(line)
    return [_in_reading_sequence(line) for line in joined]


def _stacked_turned(lines: Sequence[PdfLine]) -> Iterator[PdfLine]:
    """Make vertical what a horizontal font has stacked, one character over the other."""
    start = 0
    while start < len(lines):
        stop = start + 1
        while (
            stop < len(lines)
            and _is_single(lines[stop - 1])
            and _is_single(lines[stop])
            and _is_below(lines[stop - 1], lines[stop])
        ):
            stop += 1
        for line in lines[start:stop]:
            if stop - start >= _MIN_STACKED:
                yield replace(line, direction=(0.0, 1.0), is_vertical=True)
            else:
                yield line
        start = stop


def _is_single(line: PdfLine) -> bool:
    text = line.text.strip()
    return len(text) == 1 and not is_spaced_script(text) and not line.is_vertical


def _is_below(upper: PdfLine, lower: PdfLine) -> bool:
    above, below = upper.box, lower.box
    is_aligned = abs(above.x_min + above.x_max - below.x_min - below.x_max) < upper.size_pt
    step = (below.y_min + below.y_max - above.y_min - above.y_max) / 2
    return is_aligned and upper.size_pt / 2 < step < (1 + _MAX_PIECE_GAP / 2) * upper.size_pt


def _continues(line: PdfLine, following: PdfLine) -> bool:
    if line.is_visible != following.is_visible or line.direction != following.direction:
        return False
    if line.is_vertical and following.is_vertical:
        return _overlap(line.box, following.box, is_level=False) and (
            -line.size_pt / 2 < following.box.y_min - line.box.y_max < _MAX_PIECE_GAP * line.size_pt
        )
    if line.direction[0] < 1 - AXIS_TOLERANCE or line.block != following.block:
        return False
    if not (is_right_to_left(line.text) or is_right_to_left(following.text)):
        return False
    apart = max(following.box.x_min - line.box.x_max, line.box.x_min - following.box.x_max)
    return (
        _overlap(line.box, following.box, is_level=True)
        and apart < 2 * _MAX_PIECE_GAP * line.size_pt
    )


def _overlap(box: Box, other: Box, *, is_level: bool) -> bool:
    """Whether two boxes share most of the smaller one's extent across the reading direction."""
    if is_level:
        shared = min(box.y_max, other.y_max) - max(box.y_min, other.y_min)
        return shared > _MIN_PIECE_OVERLAP * min(box.height, other.height)
    shared = min(box.x_max, other.x_max) - max(box.x_min, other.x_min)
    return shared > _MIN_PIECE_OVERLAP * min(box.width, other.width)


def _in_reading_sequence(line: PdfLine) -> PdfLine:
    if line.is_vertical or not is_right_to_left(line.text):
        return line
    return replace(line, glyphs=tuple(reading_sequence(line.glyphs)))
