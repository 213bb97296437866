"""Splitting lines that are wider than the largest bucket, and joining what was read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Span
from workers.ocr.ink import blank_columns, column_contrast, widest_blank
from workers.ocr.scripts import is_spaced_script

# Each piece sees this much of its neighbor, more than the widest letter at a height of 48 px.
OVERLAP_PX: Final = 64
# A cut is looked for in this many columns before a piece is full.
_SEARCH_PX: Final = 800
# A blank at least this wide, at a height of 48 px, is a space between words.
_SPACE_PX: Final = 14


@dataclass(frozen=True, slots=True)
class LinePiece:
    """One piece of a line; ``blank_after_px`` is how wide the blank at its cut is, 0 for none."""

    span: Span
    blank_after_px: int = 0


@dataclass(frozen=True, slots=True)
class PlacedCharacter:
    """One recognized character.

    Attributes:
        text: the character.
        start_px: where its output steps begin, crop pixels along the line.
        stop_px: where they end.
        confidence: probability of its first step, [0, 1].
    """

    text: str
    start_px: float
    stop_px: float
    confidence: float

    @property
    def center_px(self) -> float:
        return (self.start_px + self.stop_px) / 2


def split_line(pixels: NDArray[np.uint8], max_width_px: int) -> tuple[LinePiece, ...]:
    """Plan the pieces of a line.

    Cuts lie in the middle of the widest blank that a piece's last part offers, or at the
    column with the least contrast when there is none.

    Args:
        pixels: (H, W, 3) uint8 RGB, crop pixels.
        max_width_px: of one piece, more than the search range and two overlaps.

    Returns:
        One piece for a line that fits, else pieces that overlap and whose kept parts meet.
    """
    width_px = pixels.shape[1]
    if width_px <= max_width_px:
        return (LinePiece(Span(0, width_px, 0, width_px)),)
    contrast = column_contrast(pixels)
    is_blank = blank_columns(contrast)
    pieces = []
    kept_start = 0
    start = 0
    while width_px - start > max_width_px:
        last = start + max_width_px - OVERLAP_PX
        first = last - _SEARCH_PX
        offset, blank_px = _choose_cut(contrast[first:last], is_blank[first:last])
        cut = first + offset
        pieces.append(LinePiece(Span(start, cut + OVERLAP_PX, kept_start, cut), blank_px))
        kept_start = cut
        start = cut - OVERLAP_PX
    pieces.append(LinePiece(Span(start, width_px, kept_start, width_px)))
    return tuple(pieces)


def join_pieces(
    pieces: Sequence[LinePiece], readings: Sequence[Sequence[PlacedCharacter]]
) -> tuple[PlacedCharacter, ...]:
    """Join what was read from the pieces of a line.

    A character belongs to the piece whose kept part holds its center, so nothing in an overlap
    is read twice. Where the cut lies in a blank as wide as a space, the space is put back.

    Args:
        pieces: of one line.
        readings: for each piece its characters, in pixels of the whole crop.
    """
    joined: list[PlacedCharacter] = []
    previous: LinePiece | None = None
    for piece, reading in zip(pieces, readings, strict=True):
        kept = [
            character
            for character in reading
            if piece.span.kept_start <= character.center_px < piece.span.kept_stop
        ]
        if previous is not None and joined and kept:
            joined.extend(_space_at_cut(previous, joined[-1], kept[0]))
        joined.extend(kept)
        previous = piece
    return tuple(joined)


def _choose_cut(contrast: NDArray[np.int16], is_blank: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the best column of a range and how wide the blank around it is."""
    blank = widest_blank(is_blank)
    if blank is None:
        return int(np.argmin(contrast)), 0
    return sum(blank) // 2, blank[1] - blank[0]


def _space_at_cut(
    piece: LinePiece, left: PlacedCharacter, right: PlacedCharacter
) -> tuple[PlacedCharacter, ...]:
    has_space = left.text == " " or right.text == " "
    are_spaced = is_spaced_script(left.text) and is_spaced_script(right.text)
    if has_space or not are_spaced or piece.blank_after_px < _SPACE_PX:
        return ()
    cut = float(piece.span.kept_stop)
    return (PlacedCharacter(" ", cut, cut, min(left.confidence, right.confidence)),)
