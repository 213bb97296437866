"""The text that a PDF page states about itself, and its form on the way out of the render child.

The child that reads it is the one that hostile files are opened in, so whoever takes a layer from
there checks it: ``layer_from_json`` trusts no number and no length.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workers.ocr.geometry import Box, Quad
from workers.ocr.result import Block, TextLine, Word

MAX_LAYER_CHARACTERS: Final = 60_000
"""A page of more is not read from its layer; the densest newspaper page has about 30,000."""

# A layer is what the file says, without doubt or guess.
_STATED: Final = 1.0
_COORDINATE_DIGITS: Final = 2


@dataclass(frozen=True, slots=True)
class TextLayer:
    """Lines of a page's own text in the order asked for, and the blocks that they form.

    Attributes:
        lines: with confidence 1.0, upright page pixels.
        blocks: in the same order; together they hold every line once.
    """

    lines: tuple[TextLine, ...] = ()
    blocks: tuple[Block, ...] = ()


def layer_line(text: str, quad: Quad, words: tuple[Word, ...]) -> TextLine:
    """Return a line as a layer has them."""
    return TextLine(text, quad, confidence=_STATED, detection_score=_STATED, words=words)


def layer_to_json(layer: TextLayer) -> dict[str, Any]:
    """Return the layer as plain values: lists, numbers and texts."""
    return {
        "lines": [
            [
                line.text,
                [round(float(value), _COORDINATE_DIGITS) for value in line.quad.corners.ravel()],
                [[word.text, *_box_values(word.box)] for word in line.words],
            ]
            for line in layer.lines
        ],
        "blocks": [list(block.lines) for block in layer.blocks],
    }


def layer_from_json(values: Any, *, width_px: int, height_px: int) -> TextLayer:  # noqa: ANN401 - whatever a child in an attacker's hands may send
    """Make a layer of what ``layer_to_json`` gave, trusting nothing.

    Args:
        values: a decoded JSON value.
        width_px: of the page; nothing may lie outside.
        height_px: likewise.

    Raises:
        ValueError: the value is not of this form, or too long, or a place is not on the page.
    """
    try:
        lines = tuple(_line(value, width_px, height_px) for value in values["lines"])
        blocks = tuple(Block(tuple(int(position) for position in b)) for b in values["blocks"])
    except (TypeError, KeyError, IndexError, OverflowError) as error:
        raise ValueError("no text layer") from error
    if sum(len(line.text) for line in lines) > 2 * MAX_LAYER_CHARACTERS:
        raise ValueError("the text layer is too long")
    if [position for block in blocks for position in block.lines] != list(range(len(lines))):
        raise ValueError("the blocks do not hold every line once")
    if not all(block.lines for block in blocks):
        raise ValueError("a block is empty")
    return TextLayer(lines, blocks)


def box_from_json(values: Any, *, width_px: int, height_px: int) -> Box:  # noqa: ANN401 - see layer_from_json
    """Make a box of four numbers, trusting nothing.

    Raises:
        ValueError: these are no four numbers of a box on the page.
    """
    x_min, y_min, x_max, y_max = (_number(value) for value in values)
    if not (0 <= x_min <= x_max <= width_px and 0 <= y_min <= y_max <= height_px):
        raise ValueError("the box is not on the page")
    return Box(x_min, y_min, x_max, y_max)


def _line(value: Any, width_px: int, height_px: int) -> TextLine:  # noqa: ANN401 - the same
    text, corners, words = value
    quad = Quad(np.array([_number(corner) for corner in corners], np.float32).reshape(4, 2))
    if (quad.corners < 0).any() or (quad.corners > (width_px, height_px)).any():
        raise ValueError("the line is not on the page")
    return layer_line(
        _text(text),
        quad,
        tuple(
            Word(_text(word), box_from_json(box, width_px=width_px, height_px=height_px))
            for word, *box in words
        ),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text is empty or none")
    value.encode()  # a lone surrogate is a ValueError here, and not when the result is written
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a coordinate is no number")
    return float(value)


def _box_values(box: Box) -> list[float]:
    return [
        round(value, _COORDINATE_DIGITS) for value in (box.x_min, box.y_min, box.x_max, box.y_max)
    ]
