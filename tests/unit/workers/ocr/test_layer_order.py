import numpy as np
import pytest

from workers.ocr.geometry import Quad
from workers.ocr.layer_order import insert_blocks, order_layer
from workers.ocr.result import Block, TextLine
from workers.ocr.text_layer import TextLayer, layer_line


def line(text: str, x: float, y: float, width: float = 200) -> TextLine:
    corners = np.array([(x, y), (x + width, y), (x + width, y + 10), (x, y + 10)], np.float32)
    return layer_line(text, Quad(corners), ())


def column(name: str, x: float, count: int = 6, *, top: float = 0) -> list[TextLine]:
    return [line(f"{name}{row}", x, top + 12 * row) for row in range(count)]


def texts(layer: TextLayer) -> list[str]:
    return [each.text for each in layer.lines]


def test_no_lines_are_an_empty_layer() -> None:
    assert order_layer([], []) == TextLayer()


def test_the_order_of_the_file_is_kept() -> None:
    lines = [*column("right", 300), *column("left", 0), line("head", 0, -50)]

    assert texts(order_layer(lines, [0] * 6 + [1] * 6 + [2])) == [each.text for each in lines]


def test_blocks_are_those_of_the_file() -> None:
    layer = order_layer(column("a", 0, 3), [0, 0, 4])

    assert layer.blocks == (Block((0, 1)), Block((2,)))


def test_cells_that_the_file_goes_through_one_by_one_stay_whole() -> None:
    lines = [
        line(f"{row}{column}{part}", 250 * column, 60 * row + 18 * part, 60 + 11 * part)
        for row in range(6)
        for column in range(2)
        for part in range(2)
    ]

    assert texts(order_layer(lines, [0] * len(lines))) == [each.text for each in lines]


def test_columns_that_the_file_goes_through_line_by_line_are_put_in_order() -> None:
    left, right = column("left", 0, 12), column("right", 300, 12)
    mixed = [each for pair in zip(left, right, strict=True) for each in pair]

    layer = order_layer(mixed, list(range(24)))

    assert texts(layer) == [each.text for each in (*left, *right)]


def test_a_file_that_wanders_keeps_its_order_and_blocks_where_that_is_asked_for() -> None:
    left, right = column("left", 0, 12), column("right", 300, 12)
    mixed = [each for pair in zip(left, right, strict=True) for each in pair]

    layer = order_layer(mixed, [position // 2 for position in range(24)], "file")

    assert texts(layer) == [each.text for each in mixed]
    assert layer.blocks == tuple(Block((first, first + 1)) for first in range(0, 24, 2))


def test_a_file_in_no_order_is_put_in_order() -> None:
    lines = column("line", 0, 30)
    shuffled = [lines[position] for position in np.random.default_rng(5).permutation(30)]

    assert texts(order_layer(shuffled, list(range(30)))) == [each.text for each in lines]


def test_a_layer_of_too_many_lines_keeps_the_order_of_the_file() -> None:
    lines = column("line", 0, 3_001)
    shuffled = [lines[position] for position in np.random.default_rng(5).permutation(3_001)]

    assert texts(order_layer(shuffled, list(range(3_001)))) == [each.text for each in shuffled]


def test_a_form_in_no_order_is_put_in_rows() -> None:
    rows = [
        cell
        for row in range(16)
        for cell in (line(f"name{row}", 0, 20 * row, 60), line(f"{row}", 300, 20 * row, 40))
    ]
    shuffled = [rows[position] for position in np.random.default_rng(5).permutation(len(rows))]

    layer = order_layer(shuffled, list(range(len(rows))))

    assert texts(layer) == [each.text for each in rows]


def test_columns_of_hebrew_are_read_from_the_right() -> None:
    first = [line(f"\u05e9\u05dc\u05d5\u05dd {row}", 300, 12 * row) for row in range(12)]
    second = [line(f"\u05e1\u05e4\u05e8 {row}", 0, 12 * row) for row in range(12)]
    mixed = [each for pair in zip(first, second, strict=True) for each in pair]

    layer = order_layer(mixed, list(range(24)))

    assert texts(layer) == [each.text for each in (*first, *second)]


def test_a_row_of_cells_stays_together() -> None:
    cells = [
        line(f"{row}{cell}", 100 * cell, 12 * row, 30)
        for row in range(5)
        for cell in "012"
        for cell in [int(cell)]
    ]

    assert texts(order_layer(cells, [0] * 15)) == [each.text for each in cells]


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (-40, ["new", "a0", "a1", "b0", "b1"]),
        (50, ["a0", "a1", "new", "b0", "b1"]),
        (200, ["a0", "a1", "b0", "b1", "new"]),
    ],
)
def test_recognized_lines_go_where_they_stand(y: float, expected: list[str]) -> None:
    layer = order_layer([*column("a", 0, 2), *column("b", 0, 2, top=100)], [0, 0, 1, 1])

    merged = insert_blocks(layer, [[line("new", 0, y)]])

    assert texts(merged) == expected
    assert [position for block in merged.blocks for position in block.lines] == list(range(5))


def test_recognized_blocks_keep_their_order() -> None:
    layer = order_layer([line("stamp", 400, 0)], [0])
    blocks = [column("a", 0, 3, top=20), column("b", 300, 3, top=20)]

    merged = insert_blocks(layer, blocks)

    recognized = [text for text in texts(merged) if text != "stamp"]
    assert recognized == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_recognized_lines_leave_the_order_of_the_file_as_it_is() -> None:
    left, right = column("left", 0, 12), column("right", 300, 12)
    mixed = [each for pair in zip(left, right, strict=True) for each in pair]
    layer = order_layer(mixed, list(range(24)), "file")

    merged = insert_blocks(layer, [[line("new", 300, 400)]])

    assert texts(merged) == [*(each.text for each in mixed), "new"]


def test_recognized_lines_alone_are_a_layer() -> None:
    assert texts(insert_blocks(TextLayer(), [column("a", 0, 2)])) == ["a0", "a1"]
