import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from workers.ocr.geometry import (
    Box,
    Fit,
    Quad,
    model_px_to_page_px,
    page_px_to_model_px,
    rotate_points,
    signed_area,
    sort_clockwise,
    unclipped_size,
    unturned_points,
)


def rectangle(width: float, height: float, angle_deg: float = 0.0) -> np.ndarray:
    """Corners from top-left clockwise, turned clockwise around a far point."""
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float64)
    return np.add(rotate_points(corners, angle_deg), (500, 700))


sides = st.floats(min_value=2, max_value=400)
angles = st.floats(min_value=-180, max_value=180)


@given(width=sides, height=sides, angle=angles, shuffle=st.permutations(range(4)))
def test_corners_are_clockwise_whatever_order_they_come_in(
    width: float, height: float, angle: float, shuffle: list[int]
) -> None:
    corners = rectangle(width, height, angle)

    clockwise = sort_clockwise(corners[list(shuffle)])

    assert signed_area(clockwise) == pytest.approx(width * height, rel=1e-6)


@given(
    width=sides,
    height=sides,
    angle=st.floats(min_value=-44.9, max_value=44.9),
    shuffle=st.permutations(range(4)),
)
def test_a_quad_keeps_its_reading_start_up_to_45_degrees(
    width: float, height: float, angle: float, shuffle: list[int]
) -> None:
    corners = rectangle(width, height, angle)

    quad = Quad.from_corners(corners[list(shuffle)])

    assert np.allclose(quad.corners, corners, atol=1e-3)


@pytest.mark.parametrize("angle", [44.0, 45.0, 46.0, -44.0, -45.0, -46.0])
def test_near_45_degrees_no_corner_is_lost_or_doubled(angle: float) -> None:
    corners = rectangle(200, 30, angle)

    quad = Quad.from_corners(corners[[2, 0, 3, 1]])

    assert len({tuple(corner) for corner in quad.corners.tolist()}) == 4
    assert quad.area == pytest.approx(200 * 30, rel=1e-4)


def test_a_quad_reads_along_its_first_edge() -> None:
    quad = Quad.from_corners(rectangle(100, 20, 10))

    assert quad.angle_deg == pytest.approx(10, abs=1e-3)
    assert quad.width == pytest.approx(100, abs=1e-3)
    assert quad.height == pytest.approx(20, abs=1e-3)


def test_a_turned_quad_reads_downwards_from_its_second_corner() -> None:
    quad = Quad.from_corners(rectangle(20, 100))

    turned = quad.turned()

    assert turned.angle_deg == pytest.approx(90)
    assert turned.width == pytest.approx(100)
    assert np.array_equal(turned.corners[0], quad.corners[1])


@given(start=st.floats(0, 0.9), length=st.floats(0.01, 0.1), angle=angles)
def test_a_section_lies_inside_its_quad_and_has_its_share(
    start: float, length: float, angle: float
) -> None:
    quad = Quad(rectangle(300, 40, angle).astype(np.float32))

    section = quad.section(start, start + length)

    assert section.width == pytest.approx(300 * length, abs=1e-2)
    assert section.height == pytest.approx(40, abs=1e-2)
    assert section.angle_deg == pytest.approx(quad.angle_deg, abs=0.1) or abs(
        abs(section.angle_deg) - 180
    ) == pytest.approx(0, abs=0.1)


def test_the_box_of_a_quad_holds_all_corners() -> None:
    quad = Quad.from_corners(rectangle(100, 20, 45))

    half_sum = (100 + 20) / math.sqrt(2)
    assert quad.box.width == pytest.approx(half_sum, abs=1e-3)
    assert quad.box.height == pytest.approx(half_sum, abs=1e-3)
    assert Box(1, 2, 4, 8).height == 6


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        (np.zeros((5, 2)), "shape"),
        (np.array([(0, 0), (1, 0), (1, np.nan), (0, 1)]), "finite"),
        (np.array([(0, 0), (1, 1), (2, 2), (3, 3)]), "no area"),
    ],
)
def test_corners_that_are_no_quad_are_refused(corners: NDArray[np.floating], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Quad.from_corners(corners)


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        (np.zeros((3, 2), dtype=np.float32), "shape"),
        (np.full((4, 2), np.inf, dtype=np.float32), "finite"),
        (np.array([(0, 0), (0, 1), (1, 1), (1, 0)], dtype=np.float32), "clockwise"),
    ],
)
def test_a_quad_is_checked_where_it_is_made(corners: NDArray[np.floating], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Quad(corners)


@given(
    x=st.floats(0, 3000), y=st.floats(0, 4000), scale_x=st.floats(0.1, 2), scale_y=st.floats(0.1, 2)
)
def test_a_point_comes_back_from_the_models_frame(
    x: float, y: float, scale_x: float, scale_y: float
) -> None:
    fit = Fit(scale_x, scale_y, page_width_px=3000, page_height_px=4000)
    points_page_px = np.array([(x, y)], dtype=np.float32)

    there_and_back = model_px_to_page_px(page_px_to_model_px(points_page_px, fit), fit)

    assert np.allclose(there_and_back, points_page_px, atol=0.01)


def test_points_beyond_the_page_are_moved_to_its_edge() -> None:
    fit = Fit(1.0, 1.0, page_width_px=100, page_height_px=50)

    points = model_px_to_page_px(np.array([(-5.0, 20.0), (120.0, 60.0)]), fit)

    assert points.tolist() == [[0, 20], [100, 50]]


@given(width=st.floats(3, 2000), height=st.floats(3, 200), ratio=st.floats(1, 2.5))
def test_an_unclipped_rectangle_grows_by_the_same_distance_on_every_side(
    width: float, height: float, ratio: float
) -> None:
    grown_width, grown_height = unclipped_size(width, height, ratio)

    distance = width * height * ratio / (2 * width + 2 * height)
    assume(distance > 0)
    assert grown_width - width == pytest.approx(2 * distance)
    assert grown_height - height == pytest.approx(2 * distance)


@given(
    turns=st.integers(-4, 8),
    width=st.integers(2, 9),
    height=st.integers(2, 9),
    data=st.data(),
)
def test_a_pixel_of_a_turned_image_is_found_where_it_was(
    turns: int, width: int, height: int, data: st.DataObject
) -> None:
    column = data.draw(st.integers(0, width - 1))
    row = data.draw(st.integers(0, height - 1))
    image = np.zeros((height, width), dtype=np.uint8)
    image[row, column] = 1
    turned = np.rot90(image, -turns)
    (turned_row,), (turned_column,) = np.nonzero(turned)

    was = unturned_points(
        np.array([turned_column + 0.5, turned_row + 0.5]),
        turns,
        width_px=turned.shape[1],
        height_px=turned.shape[0],
    )

    assert was.tolist() == [column + 0.5, row + 0.5]
