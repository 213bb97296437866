"""Lines and words of a PDF page, from its characters and where they stand.

MuPDF puts characters together to lines in the order of the file, finds the spaces in the gaps,
takes ligatures apart and turns right-to-left text around. What it leaves in pieces is put together
by ``workers.ocr.line_pieces``.
"""

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Box, Quad
from workers.ocr.result import TextLine, Word
from workers.ocr.right_to_left import lam_alef_mended
from workers.ocr.scripts import is_spaced_script
from workers.ocr.text_layer import layer_line

# MuPDF: a character that is neither filled nor stroked leaves no ink.
_FILLED_OR_STROKED: Final = 16 | 32
_VERTICAL: Final = 1
# A font's own ascender and descender may be nonsense; the box of a character has at least these.
_LEAST_ASCENT: Final = 0.7
_LEAST_DESCENT: Final = 0.15
_LEAST_SIDE_PT: Final = 0.05
AXIS_TOLERANCE: Final = 0.02
"""A direction that is off a side of the page by no more, in sine, is along it."""

_FIRST_UNSPACED: Final = "\u2e80"  # below it, all scripts put spaces between words
_SOFT_HYPHEN: Final = "\u00ad"
_NO_BREAK_SPACE: Final = "\u00a0"
_ACCENTS: Final = {
    "`": "\u0300",
    "\u00b4": "\u0301",
    "^": "\u0302",
    "\u02c6": "\u0302",
    "\u02dc": "\u0303",
    "\u00af": "\u0304",
    "\u02d8": "\u0306",
    "\u02d9": "\u0307",
    "\u00a8": "\u0308",
    "\u02da": "\u030a",
    "\u02dd": "\u030b",
    "\u02c7": "\u030c",
    "\u00b8": "\u0327",
}
_DOTTED: Final = {"\u0131": "i", "\u0237": "j"}
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


@dataclass(frozen=True)
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

    @cached_property
    def text(self) -> str:
        return "".join(glyph.text for glyph in self.glyphs)

    @cached_property
    def character_count(self) -> int:
        """Characters that are not white space."""
        return sum(map(len, self.text.split()))

    @cached_property
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
            glyphs=tuple(lam_alef_mended(_with_accents(glyphs))),
            direction=(float(line["dir"][0]), float(line["dir"][1])),
            size_pt=float(longest["size"]),
            is_vertical=line["wmode"] == _VERTICAL,
            is_visible=is_visible,
            block=block,
        )
        start = stop


def _with_accents(glyphs: Sequence[Glyph]) -> list[Glyph]:
    """Compose a letter with the accent that is set over it as a character of its own.

    That is how TeX's first fonts write them, accent first.
    """
    composed: list[Glyph] = []
    for glyph in glyphs:
        accent = composed[-1] if composed else None
        mark = _ACCENTS.get(accent.text) if accent is not None else None
        if accent is not None and mark is not None and glyph.text.isalpha():
            middle = (accent.x_min + accent.x_max) / 2
            letter = unicodedata.normalize("NFC", _DOTTED.get(glyph.text, glyph.text) + mark)
            if len(letter) == 1 and glyph.x_min < middle < glyph.x_max:
                composed[-1] = replace(glyph, text=letter, y_min=min(glyph.y_min, accent.y_min))
                continue
        composed.append(glyph)
    return composed


def _is_visible(span: Mapping[str, Any]) -> bool:
    return bool(span["char_flags"] & _FILLED_OR_STROKED) and span["alpha"] > 0


def _glyphs(span: Mapping[str, Any], direction: Sequence[float]) -> Iterator[Glyph]:
    size = span["size"]
    is_level = abs(direction[1]) < AXIS_TOLERANCE and direction[0] > 0
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
    if min(abs(cos), abs(sin)) < AXIS_TOLERANCE:
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
