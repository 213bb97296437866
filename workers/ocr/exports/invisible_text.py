"""A page's words as PDF operators: nothing is drawn, and each word can be selected at its place."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from unicodedata import category

from workers.ocr.exports.glyphless_font import ADVANCE, DESCENT, FONT_NAME, GlyphCodes
from workers.ocr.exports.page_view import Box, ExportLine, ExportWord, Page, blocks_of
from workers.ocr.right_to_left import is_right_to_left

Matrix = tuple[float, float, float, float, float, float]
"""a, b, c, d, e, f of PDF: x' = ax + cy + e, y' = bx + dy + f."""

_MIN_PX: Final = 0.1
# A shorter reading direction is none.
_MIN_LENGTH_PX: Final = 1e-6


@dataclass(frozen=True, slots=True)
class _Piece:
    """A word, or the space between two: its text and its place in its line's own frame.

    ``along`` and ``across`` are where it begins in reading direction and where its foot is.
    """

    text: str
    along: float
    across: float
    width: float
    height: float


def hidden_text(
    page: Page,
    to_page: Matrix,
    codes: GlyphCodes,
    *,
    is_stated: Callable[[ExportWord], bool] = lambda _: False,
) -> bytes:
    """Return operators for the words of a page; empty for a page without words.

    Args:
        page: page object.
        to_page: from pixels of the upright page image, y down, to the page's user space.
        codes: of the document.
        is_stated: which words the page has already, and which are left out.
    """
    lines = [
        operators
        for block in blocks_of(page)
        for line in block.lines
        if (operators := "".join(_line(line, codes, is_stated)))
    ]
    if not lines:
        return b""
    matrix = " ".join(f"{value:.6f}" for value in to_page)
    # Text in mode 3 is neither filled nor stroked.
    return f"q {matrix} cm BT 3 Tr\n{''.join(lines)}ET Q\n".encode()


def _line(
    line: ExportLine, codes: GlyphCodes, is_stated: Callable[[ExportWord], bool]
) -> Iterator[str]:
    words = [word for word in line.words if not is_stated(word)]
    if not words:
        return
    (x0, y0), (x1, y1) = line.polygon[0], line.polygon[1]
    length = math.hypot(x1 - x0, y1 - y0)
    # Reading direction; up is a quarter turn against the clock from it, as seen (y runs down).
    right = ((x1 - x0) / length, (y1 - y0) / length) if length > _MIN_LENGTH_PX else (1.0, 0.0)
    up = (right[1], -right[0])
    pieces = list(_pieces([_placed(word, right) for word in words], words))
    if is_right_to_left(line.text):
        pieces.reverse()  # files have Arabic and Hebrew as they look, from left to right
    for piece in pieces:
        x = piece.along * right[0] + piece.across * up[0]
        y = piece.along * right[1] + piece.across * up[1]
        shown = piece.text[::-1] if is_right_to_left(piece.text) else piece.text
        stretch = 100 * piece.width / (len(shown) * ADVANCE * piece.height)
        yield (
            f"/{FONT_NAME} {piece.height:.2f} Tf {stretch:.2f} Tz "
            f"{right[0]:.5f} {right[1]:.5f} {up[0]:.5f} {up[1]:.5f} {x:.2f} {y:.2f} Tm "
            f"<{codes.encode(shown)}> Tj\n"
        )


def _placed(word: ExportWord, right: tuple[float, float]) -> _Piece:
    """Return a word in the frame of its line: along it, and across it upwards."""
    x_min, y_min, x_max, y_max = word.box
    center = ((x_min + x_max) / 2, (y_min + y_max) / 2)
    width, height = _sides(word.box, right)
    along = center[0] * right[0] + center[1] * right[1] - width / 2
    middle = center[0] * right[1] - center[1] * right[0]
    foot = middle - height / 2 + DESCENT * height
    return _Piece(_writable(word.text) or "\ufffd", along, foot, width, height)


def _writable(text: str) -> str:
    """Return text without controls and halves of characters; any white space is a space."""
    if text.isprintable():
        return text
    kept = (character for character in text if category(character) not in {"Cc", "Cs"})
    return "".join(" " if character.isspace() else character for character in kept)


def _sides(box: Box, right: tuple[float, float]) -> tuple[float, float]:
    """Return length and height of the turned rectangle whose upright box this is.

    The box of a rectangle w x h that is turned has sides wc + hs and ws + hc, with c and s the
    cosine and sine of the turn. Near 45 degrees they do not tell w and h apart; then, and where no
    such rectangle fits the box, it is the box itself.
    """
    box_width, box_height = max(box[2] - box[0], _MIN_PX), max(box[3] - box[1], _MIN_PX)
    cosine, sine = abs(right[0]), abs(right[1])
    if cosine < sine:
        box_width, box_height = box_height, box_width
        cosine, sine = sine, cosine
    spread = cosine**2 - sine**2
    if spread > 0.5:  # noqa: PLR2004 - up to 30 degrees
        width = (box_width * cosine - box_height * sine) / spread
        height = (box_height * cosine - box_width * sine) / spread
        if width > _MIN_PX and height > _MIN_PX:
            return width, height
    return box_width, box_height


def _pieces(placed: list[_Piece], words: list[ExportWord]) -> Iterator[_Piece]:
    """Yield the words, and between two the space that stands there, as wide as the gap."""
    for index, piece in enumerate(placed):
        yield piece
        if index + 1 == len(placed) or not words[index].is_spaced:
            continue
        left, right = sorted((piece, placed[index + 1]), key=lambda each: each.along)
        start = left.along + left.width
        gap = max(right.along - start, _MIN_PX)
        yield _Piece(" ", start, piece.across, gap, piece.height)
