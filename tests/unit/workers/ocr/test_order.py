from random import Random

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


def test_a_heading_over_two_of_three_columns_stands_before_them() -> None:
    heading = [line_at(0, 0, 660, 40)]
    columns = [*column(0, 60, 8), *column(360, 60, 8)]
    third = column(720, 0, 10)

    order = order_lines([*third, *columns, *heading])

    read = [*range(26, 27), *range(10, 26)]
    assert order.lines in {(*read, *range(10)), (*range(10), *read)}


def test_a_heading_at_the_left_of_what_follows_both_columns_is_read_after_them() -> None:
    columns = [*column(0, 0, 10), *column(360, 0, 10)]
    below = [line_at(0, 310, 150), *column(0, 340, 4, width=660)]

    assert order_lines([*columns, *below]).lines == tuple(range(25))


def test_the_longer_of_two_columns_keeps_its_last_lines() -> None:
    columns = [*column(0, 0, 12), *column(360, 0, 9)]
    below = [line_at(0, 400, 660)]

    assert order_lines([*columns, *below]).lines == tuple(range(22))


def test_two_bands_of_columns_are_read_one_after_the_other() -> None:
    upper = [*column(0, 0, 5), *column(360, 0, 5)]
    headline = [line_at(0, 180, 660, 36)]
    lower = [*column(0, 240, 5), *column(360, 240, 5)]

    assert order_lines([*upper, *headline, *lower]).lines == tuple(range(21))


def test_page_header_and_footer_stand_around_the_columns() -> None:
    header = [line_at(0, 0, 30), line_at(500, 0, 160)]
    footer = [line_at(320, 500, 30)]

    order = order_lines([*header, *column(0, 60, 10), *column(360, 60, 10), *footer])

    assert order.lines == tuple(range(23))


def test_a_caption_between_two_parts_of_a_column_is_read_in_its_place() -> None:
    left = [*column(0, 0, 4), line_at(20, 300, 250, 16), *column(0, 340, 4)]
    right = column(360, 0, 16)

    assert order_lines([*left, *right]).lines == tuple(range(25))


CELL_WIDTHS = (
    (180, 240, 60),
    (120, 300, 70),
    (220, 180, 60),
    (90, 270, 50),
    (200, 210, 60),
    (150, 330, 70),
)


def test_a_table_of_long_cells_is_read_row_by_row() -> None:
    cells = [
        line_at(x, 30 * row, width)
        for row, widths in enumerate(CELL_WIDTHS)
        for x, width in zip((0, 260, 640), widths, strict=True)
    ]

    assert order_lines(cells).lines == tuple(range(18))


def test_labels_stand_before_their_values() -> None:
    form = [
        line_at(x, 44 * row, width)
        for row in range(8)
        for x, width in ((0, 150), (220, 130 + 15 * (row % 3)))
    ]

    assert order_lines(form).lines == tuple(range(16))


def test_a_receipt_is_read_row_by_row() -> None:
    total = [line_at(0, 280, 120, 30), line_at(320, 280, 80, 30)]
    items = [
        line_at(x, 26 * row, width)
        for row in range(10)
        for x, width in ((0, 90 + 20 * (row % 5)), (340, 60))
    ]

    assert order_lines([*items, *total]).lines == tuple(range(22))


def test_a_cell_of_several_lines_is_read_in_one_go() -> None:
    upper = [line_at(0, 0, 100), *column(160, 0, 3, width=260), line_at(500, 0, 60)]
    lower = [line_at(0, 110, 100), *column(160, 110, 2, width=260), line_at(500, 110, 60)]

    assert order_lines([*upper, *lower]).lines == tuple(range(9))


def test_a_line_in_two_parts_above_whole_lines_stays_together() -> None:
    split = [line_at(0, 0, 90), line_at(110, 1, 190)]

    assert order_lines([*split, *column(0, 28, 5)]).lines == tuple(range(7))


def test_a_note_in_the_margin_is_read_in_one_go() -> None:
    note = [line_at(0, 47 + 19 * row, 90, 14) for row in range(4)]
    body = column(130, 0, 8, width=500)

    order = order_lines([*note, *body])

    assert note_positions(order.lines, 4) in {(i, i + 1, i + 2, i + 3) for i in range(9)}


def note_positions(lines: tuple[int, ...], count: int) -> tuple[int, ...]:
    return tuple(lines.index(line) for line in range(count))


def test_two_tiers_of_downward_lines_are_read_one_after_the_other() -> None:
    upper = [downward(800 - 40 * i, 50, 300 - 60 * (i % 3)) for i in range(9)]
    lower = [downward(800 - 40 * i, 400, 300 - 70 * (i % 2)) for i in range(9)]
    title = [Quad.from_corners(line_at(300, 800, 200).corners)]

    order = order_lines([*lower, *title, *upper])

    read = [line for line in order.lines if line != 9]
    assert read == [*range(10, 19), *range(9)]


def test_horizontal_lines_stand_around_downward_writing_in_their_own_order() -> None:
    head = [line_at(100, 0, 300), line_at(560, 0, 200)]
    body = [downward(800 - 40 * i, 60, 500) for i in range(9)]
    caption = column(200, 600, 2)
    foot = [line_at(790, 700, 26, 22)]

    assert order_lines([*head, *body, *caption, *foot]).lines == tuple(range(14))


def test_ruby_is_read_after_the_line_that_it_stands_beside() -> None:
    lines = [downward(800 - 60 * i, 50, 600, 30) for i in range(4)]
    ruby = [downward(832 - 60, 120, 60, 12), downward(832 - 60, 400, 80, 12)]

    assert order_lines([*ruby, *lines]).lines == (2, 3, 0, 1, 4, 5)


def downward(x: float, y: float, length: float, thickness: float = 24) -> Quad:
    return Quad.from_corners(line_at(x, y, thickness, length).corners).turned()


def test_an_indented_line_begins_a_block() -> None:
    lines = [*column(0, 0, 3), line_at(30, 84, 270), *column(0, 112, 3)]

    assert order_lines(lines).blocks == ((0, 1, 2), (3, 4, 5, 6))


def test_a_list_with_hanging_lines_is_not_torn_apart() -> None:
    lines = [line_at(0, 0, 300), line_at(30, 28, 270), line_at(30, 56, 270), line_at(0, 84, 300)]

    assert order_lines(lines).blocks == ((0, 1, 2, 3),)


boxes = st.lists(
    st.tuples(st.floats(0, 900), st.floats(0, 900), st.floats(5, 600), st.floats(5, 60)),
    max_size=40,
)
# On a grid, so that moving and scaling them loses nothing.
grid_boxes = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30), st.integers(1, 3)),
    max_size=30,
    unique_by=lambda box: box[:2],
)
GRID_PX = 16.0


def grid_line(box: tuple[int, int, int, int], *, shift: float = 0, scale: float = 1) -> Quad:
    x, y, width, height = (value * GRID_PX * scale for value in box)
    return line_at(x + shift, y + shift, width, height)


@settings(deadline=None)
@given(grid_boxes, st.randoms(use_true_random=False))
def test_the_order_in_which_lines_are_found_decides_nothing(
    lines: list[tuple[int, int, int, int]], random: Random
) -> None:
    shuffled = random.sample(range(len(lines)), len(lines))

    order = order_lines([grid_line(box) for box in lines])
    again = order_lines([grid_line(lines[i]) for i in shuffled])

    assert [lines[i] for i in order.lines] == [lines[shuffled[i]] for i in again.lines]


@settings(deadline=None)
@given(grid_boxes, st.integers(-4, 4), st.sampled_from([0.25, 0.5, 2.0, 4.0]))
def test_moving_or_scaling_a_page_changes_no_order(
    lines: list[tuple[int, int, int, int]], steps: int, scale: float
) -> None:
    order = order_lines([grid_line(box) for box in lines])
    again = order_lines([grid_line(box, shift=steps * 64.0, scale=scale) for box in lines])

    assert again.blocks == order.blocks


@settings(deadline=None)
@given(
    st.integers(3, 20),
    st.integers(3, 20),
    st.integers(0, 27),
    st.integers(20, 120),
    st.floats(-5, 5),
    st.randoms(use_true_random=False),
)
def test_two_clean_columns_are_never_interleaved(
    left_count: int,
    right_count: int,
    offset: int,
    gutter: int,
    angle_deg: float,
    random: Random,
) -> None:
    lines = [*column(0, 0, left_count), *column(300 + gutter, offset, right_count)]
    shuffled = random.sample(range(len(lines)), len(lines))

    order = order_lines([turned(lines[i], angle_deg) for i in shuffled])

    assert [shuffled[i] for i in order.lines] == list(range(len(lines)))


@settings(deadline=None)
@given(boxes, st.floats(-180, 180))
def test_every_line_is_in_exactly_one_block(
    lines: list[tuple[float, float, float, float]], angle_deg: float
) -> None:
    quads = [turned(line_at(*line), angle_deg) for line in lines]

    order = order_lines(quads)

    assert sorted(order.lines) == list(range(len(quads)))
    assert all(order.blocks)
