"""Lines and words of a PDF page, from its characters and where they stand.

MuPDF puts characters together to lines in the order of the file, finds the spaces in the gaps,
takes ligatures apart and turns right-to-left text around. What is mended here is what it leaves in
pieces: vertical lines whose characters are set one by one, and lines that change their direction.
"""

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Box, Quad
from workers.ocr.result import TextLine, Word
from workers.ocr.right_to_left import is_right_to_left, lam_alef_mended, reading_sequence
from workers.ocr.scripts import is_spaced_script
from workers.ocr.text_layer import layer_line

# MuPDF: a character that is neither filled nor stroked leaves no ink.
_FILLED_OR_STROKED: Final = 16 | 32
_VERTICAL: Final = 1
# Pieces of a line are so far apart at most, in type sizes.
_MAX_PIECE_GAP: Final = 0.8
# And share this much of their height.
_MIN_PIECE_OVERLAP: Final = 0.5
# Characters of a horizontal font that are stacked this often are a vertical line.
_MIN_STACKED: Final = 3
# A font's own ascender and descender may be nonsense; the box of a character has at least these.
_LEAST_ASCENT: Final = 0.7
_LEAST_DESCENT: Final = 0.15
_LEAST_SIDE_PT: Final = 0.05
_AXIS_TOLERANCE: Final = 0.02
_FIRST_UNSPACED: Final = "\u2e80"  # below it, all scripts put spaces between words
_SOFT_HYPHEN: Final = "\u00ad"
_NO_BREAK_SPACE: Final = "\u00a0"
# They change how neighbors join, in Persian and the scripts of India, so they are text.
_JOINERS: Final = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Glyph:
    """One character and the upright box around it, pt of the upright page."""

    text: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A run of characters on one baseline, as one part of it looks.

    Attributes:
        glyphs: in reading order; spaces are among them.
        direction: reading direction, a unit vector, y down.
        size_pt: of the type.
        is_vertical: set in a vertical writing mode.
        is_visible: whether the file draws it.
        block: number of the group of lines that MuPDF put it in.
    """

    glyphs: tuple[Glyph, ...]
    direction: tuple[float, float]
    size_pt: float
    is_vertical: bool
    is_visible: bool
    block: int

    @property
    def text(self) -> str:
        return "".join(glyph.text for glyph in self.glyphs)

    @property
    def character_count(self) -> int:
        """Characters that are not white space."""
        return sum(not glyph.text.isspace() for glyph in self.glyphs)

    @property
    def box(self) -> Box:
        """The upright box, without the spaces at the ends."""
        inked = [glyph for glyph in self.glyphs if not glyph.text.isspace()] or self.glyphs
        return Box(
            min(glyph.x_min for glyph in inked),
            min(glyph.y_min for glyph in inked),
            max(glyph.x_max for glyph in inked),
            max(glyph.y_max for glyph in inked),
        )


def read_lines(raw: Mapping[str, Any]) -> list[PdfLine]:
    """Take the lines out of MuPDF's structured text, in the order of the file.

    Args:
        raw: of PyMuPDF's ``extractRAWDICT``, pt of the upright page.

    Returns:
        Lines with at least one character that is no space; where part of a line is invisible, that
        part is a line of its own.
    """
    lines: list[PdfLine] = []
    for number, block in enumerate(raw["blocks"]):
        for line in block.get("lines", ()):
            lines.extend(part for part in _parts(line, number) if part.character_count)
    return lines


def _parts(line: Mapping[str, Any], block: int) -> Iterator[PdfLine]:
    """Yield the parts of a line that are visible alike; fonts do not part it."""
    spans = [span for span in line["spans"] if span["chars"]]
    start = 0
    while start < len(spans):
        is_visible = _is_visible(spans[start])
        stop = start + 1
        while stop < len(spans) and _is_visible(spans[stop]) == is_visible:
            stop += 1
        longest = max(spans[start:stop], key=lambda span: len(span["chars"]))
        glyphs = [glyph for span in spans[start:stop] for glyph in _glyphs(span, line["dir"])]
        yield PdfLine(
            glyphs=tuple(lam_alef_mended(glyphs)),
            direction=(float(line["dir"][0]), float(line["dir"][1])),
            size_pt=float(longest["size"]),
            is_vertical=line["wmode"] == _VERTICAL,
            is_visible=is_visible,
            block=block,
        )
        start = stop


def _is_visible(span: Mapping[str, Any]) -> bool:
    return bool(span["char_flags"] & _FILLED_OR_STROKED) and span["alpha"] > 0


def _glyphs(span: Mapping[str, Any], direction: Sequence[float]) -> Iterator[Glyph]:
    size = span["size"]
    is_level = abs(direction[1]) < _AXIS_TOLERANCE and direction[0] > 0
    for char in span["chars"]:
        text = _clean(char["c"])
        if not text:
            continue
        x_min, y_min, x_max, y_max = char["bbox"]
        if is_level:
            baseline = char["origin"][1]
            y_min = min(y_min, baseline - _LEAST_ASCENT * size)
            y_max = max(y_max, baseline + _LEAST_DESCENT * size)
        yield Glyph(text, x_min, y_min, x_max, y_max)


def _clean(character: str) -> str:
    """Return what a reader sees of a character: a hyphen that is drawn is a hyphen."""
    if "!" <= character <= "~":  # nearly all of them
        return character
    if character == _SOFT_HYPHEN:
        return "-"
    if character.isspace() or character == _NO_BREAK_SPACE:
        return " "
    category = unicodedata.category(character)
    if category in {"Cc", "Cf"} and character not in _JOINERS:
        return ""
    return character


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
    if line.direction[0] < 1 - _AXIS_TOLERANCE or line.block != following.block:
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


def to_text_line(line: PdfLine, *, zoom: float, width_px: int, height_px: int) -> TextLine | None:
    """Return the line as results have it, None when it lies outside the page.

    Args:
        line: pt of the upright page.
        zoom: pixels per pt.
        width_px: of the upright page image, at which everything is clipped.
        height_px: likewise.
    """
    text = " ".join(unicodedata.normalize("NFC", line.text).split())
    if not text:
        return None
    try:
        quad = _quad(line, zoom, (width_px, height_px))
    except ValueError:
        return None
    words = tuple(
        Word(unicodedata.normalize("NFC", word), box)
        for word, box in _words(line, zoom, (width_px, height_px))
    )
    return layer_line(text, quad, words)


def _quad(line: PdfLine, zoom: float, size_px: tuple[int, int]) -> Quad:
    """Return the line's quad; a ``ValueError`` when nothing of it is on the page."""
    cos, sin = line.direction
    if min(abs(cos), abs(sin)) < _AXIS_TOLERANCE:
        box = line.box
        x_max = max(box.x_max, box.x_min + _LEAST_SIDE_PT)
        y_max = max(box.y_max, box.y_min + _LEAST_SIDE_PT)
        clockwise = [(box.x_min, box.y_min), (x_max, box.y_min), (x_max, y_max), (box.x_min, y_max)]
        quarter = round(math.atan2(sin, cos) / (math.pi / 2)) % 4
        corners = np.array(clockwise[quarter:] + clockwise[:quarter])
    else:
        corners = _slanted_corners(line)
    return Quad(np.clip(corners * zoom, 0, size_px).astype(np.float32))


def _slanted_corners(line: PdfLine) -> NDArray[np.float64]:
    """Return the corners of a line at an angle, pt: boxes of slanted characters are too large."""
    cos, sin = line.direction
    turn = np.array([[cos, -sin], [sin, cos]])  # columns: along and across the reading direction
    middles = np.array([
        ((glyph.x_min + glyph.x_max) / 2, (glyph.y_min + glyph.y_max) / 2)
        for glyph in line.glyphs
        if not glyph.text.isspace()
    ])
    local = middles @ turn
    low, high = local.min(axis=0) - line.size_pt / 2, local.max(axis=0) + line.size_pt / 2
    corners: NDArray[np.float64] = (
        np.array([low, (high[0], low[1]), high, (low[0], high[1])]) @ turn.T
    )
    return corners


def _words(line: PdfLine, zoom: float, size_px: tuple[int, int]) -> Iterator[tuple[str, Box]]:
    """Yield what stands between spaces; of Chinese and Japanese each character."""
    word: list[Glyph] = []
    for glyph in line.glyphs:
        stands_alone = glyph.text >= _FIRST_UNSPACED and not is_spaced_script(glyph.text)
        if word and (glyph.text.isspace() or stands_alone):
            yield _word(word, zoom, size_px)
            word = []
        if glyph.text.isspace():
            continue
        if stands_alone:
            yield _word([glyph], zoom, size_px)
        else:
            word.append(glyph)
    if word:
        yield _word(word, zoom, size_px)


def _word(glyphs: Sequence[Glyph], zoom: float, size_px: tuple[int, int]) -> tuple[str, Box]:
    width_px, height_px = size_px
    return "".join(glyph.text for glyph in glyphs), Box(
        min(max(zoom * min(glyph.x_min for glyph in glyphs), 0.0), width_px),
        min(max(zoom * min(glyph.y_min for glyph in glyphs), 0.0), height_px),
        min(max(zoom * max(glyph.x_max for glyph in glyphs), 0.0), width_px),
        min(max(zoom * max(glyph.y_max for glyph in glyphs), 0.0), height_px),
    )
