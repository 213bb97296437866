import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.ocr.geometry import Quad, rotate_points
from workers.ocr.order import order_lines, reading_angle_deg


def line_at(x: float, y: float, width: float, height: float = 20) -> Quad:
    corners = np.array(
        [(x, y), (x + width, y), (x + width, y + height), (x, y + height)], dtype=np.float32
    )
    return Quad(corners)


def turned(quad: Quad, angle_deg: float) -> Quad:
    return Quad((rotate_points(quad.corners - 500, angle_deg) + 500).astype(np.float32))


def column(x: float, y: float, count: int, width: float = 300) -> list[Quad]:
    return [line_at(x, y + 28 * i, width) for i in range(count)]


TITLE = [line_at(100, 20, 700, 40)]
LEFT = column(50, 100, 12)
RIGHT = column(420, 108, 11)
FOOTER = [line_at(50, 480, 670)]
TWO_COLUMNS = [*TITLE, *LEFT, *RIGHT, *FOOTER]


@pytest.mark.parametrize("angle_deg", [0.0, 3.0, -4.0, 90.0, -90.0, 180.0])
@pytest.mark.parametrize("seed", range(3))
def test_two_columns_are_read_one_after_the_other_below_their_title(
    angle_deg: float, seed: int
) -> None:
    shuffled = np.random.default_rng(seed).permutation(len(TWO_COLUMNS))

    order = order_lines([turned(TWO_COLUMNS[i], angle_deg) for i in shuffled])

    assert [int(shuffled[i]) for i in order.lines] == list(range(len(TWO_COLUMNS)))


def test_three_columns_are_read_from_the_left() -> None:
    lines = [*column(0, 0, 9), *column(360, 5, 9), *column(720, 10, 9)]

    assert order_lines(lines).lines == tuple(range(27))


def test_vertical_columns_are_read_from_the_right() -> None:
    lines = [
        Quad.from_corners(line_at(x, 40, 24, 600).corners).turned() for x in (500, 460, 420, 380)
    ]

    order = order_lines(lines[::-1])

    assert order.lines == (3, 2, 1, 0)
    assert order.angle_deg == pytest.approx(90)


def test_rows_of_short_cells_are_read_row_by_row() -> None:
    cells = [line_at(x, 30 * row, 60) for row in range(6) for x in (0, 200, 400)]

    assert order_lines(cells).lines == tuple(range(18))


def test_parts_of_one_line_are_read_along_it() -> None:
    lines = [line_at(0, 0, 400), line_at(220, 31, 180), line_at(0, 30, 200), line_at(0, 60, 400)]

    assert order_lines(lines).lines == (0, 2, 1, 3)


def test_a_gap_between_lines_begins_a_block() -> None:
    lines = [*column(0, 0, 4), *column(0, 170, 3)]

    assert order_lines(lines).blocks == ((0, 1, 2, 3), (4, 5, 6))


def test_a_heading_is_a_block_of_its_own() -> None:
    lines = [line_at(0, 0, 300, 44), *column(0, 46, 3)]

    assert order_lines(lines).blocks == ((0,), (1, 2, 3))


def test_columns_do_not_share_a_block() -> None:
    blocks = order_lines(TWO_COLUMNS).blocks

    left, right = set(range(1, 13)), set(range(13, 24))
    assert not any(set(block) & left and set(block) & right for block in blocks)


def test_no_lines_have_no_order() -> None:
    order = order_lines([])

    assert (order.blocks, order.lines, order.angle_deg) == ((), (), 0.0)


def test_the_reading_angle_follows_the_long_lines() -> None:
    lines = [turned(line_at(100, 40 * i, 600), 2) for i in range(5)]
    stamp = turned(line_at(300, 300, 80), 30)

    assert reading_angle_deg([*lines, stamp]) == pytest.approx(2, abs=0.01)


def test_lines_around_180_degrees_do_not_average_to_zero() -> None:
    lines = [turned(line_at(100, 40 * i, 600), angle) for i, angle in enumerate((179, -179, 180))]

    assert abs(reading_angle_deg(lines)) == pytest.approx(180, abs=0.01)


boxes = st.lists(
    st.tuples(st.floats(0, 900), st.floats(0, 900), st.floats(5, 600), st.floats(5, 60)),
    max_size=40,
)


@settings(deadline=None)
@given(boxes, st.floats(-180, 180))
def test_every_line_is_in_exactly_one_block(
    lines: list[tuple[float, float, float, float]], angle_deg: float
) -> None:
    quads = [turned(line_at(*line), angle_deg) for line in lines]

    order = order_lines(quads)

    assert sorted(order.lines) == list(range(len(quads)))
    assert all(order.blocks)
