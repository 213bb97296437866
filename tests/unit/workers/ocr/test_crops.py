import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.crops import (
    cut_crop,
    limited_readings,
    reading_quads,
    run_downwards,
    select_detections,
)
from workers.ocr.detection import Detection
from workers.ocr.geometry import Quad, rotate_points


def quad_at(x: float, y: float, width: float, height: float, angle_deg: float = 0) -> Quad:
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float64)
    return Quad(np.add(rotate_points(corners, angle_deg), (x, y)).astype(np.float32))


def detection(width: float, score: float) -> Detection:
    return Detection(quad_at(0, 0, width, 10), score)


def test_a_page_within_the_limit_keeps_everything_in_order() -> None:
    detections = [detection(width, 0.5) for width in (30, 10, 20)]

    selection = select_detections(detections, 3)

    assert selection.kept == tuple(detections)
    assert selection.found_count == 3
    assert not selection.is_truncated


def test_2000_lines_are_kept_by_score_times_area_and_the_cut_is_told() -> None:
    rng = np.random.default_rng(7)
    detections = [
        detection(float(width), float(score))
        for width, score in zip(rng.uniform(5, 500, 2500), rng.uniform(0.5, 1, 2500), strict=True)
    ]

    selection = select_detections(detections, 2000)

    kept = {id(each) for each in selection.kept}
    weakest_kept = min(d.detection_score * d.quad.area for d in selection.kept)
    strongest_lost = max(d.detection_score * d.quad.area for d in detections if id(d) not in kept)
    assert len(selection.kept) == 2000
    assert selection.found_count == 2500
    assert selection.is_truncated
    assert weakest_kept >= strongest_lost
    assert [d for d in detections if id(d) in kept] == list(selection.kept)


def test_of_equal_lines_the_first_stay() -> None:
    detections = [detection(20, 0.9) for _ in range(5)]

    selection = select_detections(detections, 2)

    assert [id(each) for each in selection.kept] == [id(each) for each in detections[:2]]


def test_a_wide_quad_reads_one_way() -> None:
    quad = quad_at(0, 0, 100, 20)

    assert reading_quads(quad) == (quad,)


def test_a_tall_quad_reads_downwards() -> None:
    (only,) = reading_quads(quad_at(0, 0, 20, 200))

    assert only.angle_deg == pytest.approx(90)


@pytest.mark.parametrize(("width", "height"), [(20, 40), (6, 40)])
def test_a_quad_that_may_be_a_single_letter_reads_both_ways(width: float, height: float) -> None:
    upright, turned = reading_quads(quad_at(0, 0, width, height))

    assert upright.angle_deg == pytest.approx(0)
    assert turned.angle_deg == pytest.approx(90)


def test_a_nearly_square_quad_among_downward_lines_reads_both_ways() -> None:
    upright, turned = reading_quads(quad_at(0, 0, 24, 26), among_downward=True)

    assert upright.angle_deg == pytest.approx(0)
    assert turned.angle_deg == pytest.approx(90)


def test_a_wide_quad_among_downward_lines_reads_one_way() -> None:
    quad = quad_at(0, 0, 100, 20)

    assert reading_quads(quad, among_downward=True) == (quad,)


def test_the_longer_lines_say_whether_a_page_runs_downwards() -> None:
    tall = [quad_at(30 * i, 0, 20, 400) for i in range(4)]
    wide = [quad_at(0, 30 * i, 100, 20) for i in range(6)]

    assert run_downwards([*tall, *wide])
    assert not run_downwards([*tall[:1], *wide])


def test_a_page_of_nothing_but_squares_does_not_run_downwards() -> None:
    assert not run_downwards([quad_at(0, 0, 20, 28)])


def test_an_upright_crop_is_the_pages_own_pixels() -> None:
    page = np.random.default_rng(1).integers(0, 256, (200, 300, 3), dtype=np.uint8)

    crop = cut_crop(page, quad_at(30, 50, 120, 48), 48)

    assert np.array_equal(crop.pixels, page[50:98, 30:150])


def test_a_line_that_reads_downwards_is_turned_to_the_left() -> None:
    page = np.random.default_rng(1).integers(0, 256, (200, 300, 3), dtype=np.uint8)

    crop = cut_crop(page, quad_at(30, 50, 48, 120).turned(), 48)

    assert np.array_equal(crop.pixels, np.rot90(page[50:170, 30:78]))


@pytest.mark.parametrize("angle", [3.0, 20.0, -35.0, 88.0])
def test_a_slanted_crop_shows_the_line_from_its_start(angle: float) -> None:
    """The left half of the line is black and the right half gray, on white paper."""
    page = np.full((600, 600, 3), 255, dtype=np.uint8)
    rows, columns = np.mgrid[0:600, 0:600]
    local = rotate_points(np.stack((columns + 0.5 - 300, rows + 0.5 - 200), axis=-1), -angle)
    inside = (local[..., 1] > 0) & (local[..., 1] < 40)
    page[inside & (local[..., 0] > 0) & (local[..., 0] < 80)] = 0
    page[inside & (local[..., 0] >= 80) & (local[..., 0] < 160)] = 128

    crop = cut_crop(page, quad_at(300, 200, 160, 40, angle), 48)

    assert crop.pixels.shape == (48, 192, 3)
    assert crop.pixels[8:40, 8:88].mean() < 5
    assert crop.pixels[8:40, 104:184].mean() == pytest.approx(128, abs=4)


@given(
    width=st.floats(0.5, 300),
    height=st.floats(0.5, 300),
    x=st.floats(0, 299),
    y=st.floats(0, 299),
    angle=st.sampled_from([0.0, 7.0, 45.0, 90.0]),
)
def test_any_quad_gives_a_crop_of_the_right_height(
    width: float, height: float, x: float, y: float, angle: float
) -> None:
    page = np.zeros((300, 300, 3), dtype=np.uint8)
    corners = np.clip(quad_at(x, y, width, height, angle).corners, 0, 300)
    try:
        quad = Quad.from_corners(corners)
    except ValueError:
        return

    crop = cut_crop(page, quad, 48)

    assert crop.pixels.shape[0] == 48
    assert crop.pixels.shape[1] >= 1


def test_a_slanted_line_far_down_a_long_strip_is_cut_out() -> None:
    strip = np.zeros((40_000, 60, 3), dtype=np.uint8)
    strip[39_000:39_500] = 200

    crop = cut_crop(strip, quad_at(10, 39_200, 40, 20, 10), 48)

    assert crop.pixels.mean() == pytest.approx(200)


@given(tall=st.lists(st.booleans(), max_size=40), spare=st.integers(min_value=0, max_value=40))
def test_second_looks_never_take_a_page_over_its_limit_and_never_cost_a_line(
    tall: list[bool], spare: int
) -> None:
    quad = Quad(np.array([[0, 0], [9, 0], [9, 20], [0, 20]], dtype=np.float32))
    readings = [(quad, quad.turned()) if is_tall else (quad,) for is_tall in tall]

    limited = limited_readings(readings, len(tall) + spare)

    assert [quads[0] for quads in limited] == [quads[0] for quads in readings]
    assert sum(map(len, limited)) == min(sum(map(len, readings)), len(tall) + spare)
