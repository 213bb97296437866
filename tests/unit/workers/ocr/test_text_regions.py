import cv2
import numpy as np
import pytest

from workers.ocr.geometry import Quad, unclipped_size
from workers.ocr.text_regions import TextRegion, find_text_regions


def regions_of(probability_map: np.ndarray, *, dilation_px: int = 1) -> list[TextRegion]:
    return find_text_regions(
        probability_map.astype(np.float32),
        pixel_threshold=0.3,
        box_threshold=0.5,
        unclip_ratio=1.5,
        dilation_px=dilation_px,
    )


def test_a_blank_map_has_no_regions() -> None:
    assert regions_of(np.zeros((64, 64))) == []


def test_a_region_is_grown_back_around_its_center() -> None:
    probability_map = np.zeros((100, 300))
    probability_map[40:60, 50:250] = 0.9

    (region,) = regions_of(probability_map)

    quad = Quad.from_corners(region.corners_model_px)
    width, height = unclipped_size(199, 19, 1.5)
    assert quad.width == pytest.approx(width, abs=0.1)
    assert quad.height == pytest.approx(height, abs=0.1)
    assert quad.corners.mean(axis=0).tolist() == pytest.approx([150, 50], abs=0.1)
    assert region.detection_score == pytest.approx(0.9, abs=0.01)


def test_a_slanted_region_keeps_its_angle() -> None:
    probability_map = np.zeros((300, 300), dtype=np.float32)
    cv2.line(probability_map, (50, 50), (250, 150), 0.9, thickness=20)

    (region,) = regions_of(probability_map)

    assert Quad.from_corners(region.corners_model_px).angle_deg == pytest.approx(26.6, abs=1)


def test_regions_come_from_the_top() -> None:
    probability_map = np.zeros((300, 200))
    for top in (20, 120, 220):
        probability_map[top : top + 20, 20:180] = 0.9

    tops = [region.corners_model_px[:, 1].min() for region in regions_of(probability_map)]

    assert tops == sorted(tops)


def test_text_inside_a_ring_of_text_is_found_too() -> None:
    probability_map = np.zeros((300, 300), dtype=np.float32)
    cv2.circle(probability_map, (150, 150), 120, 0.9, thickness=30)
    probability_map[140:160, 110:190] = 0.9

    widths = sorted(
        Quad.from_corners(region.corners_model_px).width for region in regions_of(probability_map)
    )

    assert len(widths) == 1  # the ring's own rectangle is mostly empty, so its score is too low
    assert widths[0] < 150


def test_faint_and_tiny_regions_are_left_out() -> None:
    probability_map = np.zeros((100, 300))
    probability_map[20:40, 20:120] = 0.4
    probability_map[60:62, 20:120] = 0.9
    probability_map[60:63, 200:204] = 0.9

    assert regions_of(probability_map) == []


def test_a_region_that_stays_too_small_after_growing_is_left_out() -> None:
    probability_map = np.zeros((100, 100))
    probability_map[50:54, 50:54] = 0.9

    regions = find_text_regions(
        probability_map.astype(np.float32),
        pixel_threshold=0.3,
        box_threshold=0.5,
        unclip_ratio=0.5,
        dilation_px=1,
    )

    assert regions == []


def test_dilation_closes_a_gap_of_one_pixel() -> None:
    probability_map = np.zeros((100, 300))
    probability_map[40:60, 50:150] = 0.9
    probability_map[40:60, 151:250] = 0.9

    assert len(regions_of(probability_map)) == 2
    assert len(regions_of(probability_map, dilation_px=2)) == 1
