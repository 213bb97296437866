import json
from typing import Any

import numpy as np
import pytest

from workers.ocr.geometry import Box, Quad
from workers.ocr.result import Block, Word
from workers.ocr.text_layer import (
    MAX_LAYER_CHARACTERS,
    TextLayer,
    box_from_json,
    layer_from_json,
    layer_line,
    layer_to_json,
)

SIZE = {"width_px": 200, "height_px": 100}
CORNERS = [10.0, 20.0, 60.0, 20.0, 60.0, 30.0, 10.0, 30.0]
LINE = ["two words", CORNERS, [["two", 10.0, 20.0, 30.0, 30.0], ["words", 35.0, 20.0, 60.0, 30.0]]]


def sent(values: Any) -> Any:
    return json.loads(json.dumps(values))


def test_a_layer_comes_through_json_as_it_was() -> None:
    quad = Quad(np.array(CORNERS, np.float32).reshape(4, 2))
    words = (Word("two", Box(10, 20, 30, 30)), Word("words", Box(35, 20, 60, 30)))
    layer = TextLayer((layer_line("two words", quad, words),), (Block((0,)),))

    received = layer_from_json(sent(layer_to_json(layer)), **SIZE)

    (line,) = received.lines
    assert (line.text, line.words, received.blocks) == ("two words", words, layer.blocks)
    assert line.quad.corners.tolist() == quad.corners.tolist()
    assert line.confidence == 1.0


def test_an_empty_layer_comes_through() -> None:
    assert layer_from_json(sent(layer_to_json(TextLayer())), **SIZE) == TextLayer()


def bad_line(**changes: Any) -> dict[str, Any]:
    parts = {"text": LINE[0], "corners": LINE[1], "words": LINE[2], **changes}
    return {"lines": [list(parts.values())], "blocks": [[0]]}


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {},
        "text",
        {"lines": [], "blocks": [[0]]},
        {"lines": [LINE], "blocks": []},
        {"lines": [LINE], "blocks": [[0], []]},
        {"lines": [LINE], "blocks": [[0, 0]]},
        {"lines": [LINE], "blocks": [["zero"]]},
        {"lines": [7], "blocks": [[0]]},
        bad_line(text=""),
        bad_line(text=7),
        bad_line(text="\ud800"),
        bad_line(corners=CORNERS[:6]),
        bad_line(corners=[*CORNERS[:7], float("nan")]),
        bad_line(corners=[*CORNERS[:7], "30"]),
        bad_line(corners=[*CORNERS[:7], True]),
        bad_line(corners=[10, 20, 10, 30, 60, 30, 60, 20]),
        bad_line(corners=[10, 20, 10, 20, 10, 20, 10, 20]),
        bad_line(corners=[10, 20, 260, 20, 260, 30, 10, 30]),
        bad_line(words=[["two", 10, 20, 30]]),
        bad_line(words=[["two", 30, 20, 10, 30]]),
        bad_line(words=[["two", 10, 20, 30, 300]]),
        bad_line(words=[["", 10, 20, 30, 30]]),
        bad_line(words=7),
        bad_line(text="x" * (2 * MAX_LAYER_CHARACTERS + 1)),
    ],
)
def test_nonsense_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        layer_from_json(values, **SIZE)


@pytest.mark.parametrize("values", [[1, 2, 3], [0, 0, 1e999, 9], [5, 0, 4, 9], [-1, 0, 4, 9]])
def test_a_box_off_the_page_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"."):
        box_from_json(values, **SIZE)
