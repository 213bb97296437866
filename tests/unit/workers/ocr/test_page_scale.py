from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.page_scale import (
    LEGIBLE_GLYPH_PX,
    MAX_FRAME_PX,
    MAX_INPUT_SIDE_PX,
    TILE_OVERLAP_PX,
    choose_scale,
    estimate_glyph_height_px,
    tile_spans,
)


def page_of_text(font_scale: float, *, ink: int = 0, paper: int = 255) -> np.ndarray:
    page = np.full((800, 1200, 3), paper, dtype=np.uint8)
    for line in range(8):
        cv2.putText(
            page,
            "none are so near as summer",
            (20, 80 + 90 * line),
            cv2.FONT_HERSHEY_SIMPLEX,
            font_scale,
            (ink, ink, ink),
            max(1, round(2 * font_scale)),
        )
    return page


def test_larger_letters_are_measured_larger() -> None:
    small = estimate_glyph_height_px(page_of_text(0.5))
    large = estimate_glyph_height_px(page_of_text(2.0))

    assert small is not None
    assert large is not None
    assert large == pytest.approx(4 * small, rel=0.35)


def test_bright_letters_on_dark_paper_are_measured_alike() -> None:
    dark_on_bright = estimate_glyph_height_px(page_of_text(1.0))
    bright_on_dark = estimate_glyph_height_px(page_of_text(1.0, ink=255, paper=0))

    assert bright_on_dark == pytest.approx(dark_on_bright, abs=1)


def test_a_blank_page_has_no_letters_to_measure() -> None:
    assert estimate_glyph_height_px(np.full((300, 300, 3), 255, dtype=np.uint8)) is None


def test_ordinary_pages_are_shrunk_to_a_comfortable_side() -> None:
    assert choose_scale(2560, 1800, glyph_height_px=30.0) == pytest.approx(0.5)


@pytest.mark.parametrize(("height", "width"), [(2339, 1654), (20_000, 600), (600, 20_000)])
def test_small_text_is_never_shrunk_below_legibility(height: int, width: int) -> None:
    scale = choose_scale(height, width, glyph_height_px=9.0)

    assert 9.0 * scale == pytest.approx(LEGIBLE_GLYPH_PX)


def test_tiny_text_is_enlarged_but_at_most_twice() -> None:
    assert choose_scale(800, 600, glyph_height_px=4.0) == pytest.approx(1.75)
    assert choose_scale(800, 600, glyph_height_px=2.0) == pytest.approx(2.0)


def test_a_small_page_without_small_text_keeps_its_size() -> None:
    assert choose_scale(300, 400, glyph_height_px=None) == 1.0


@given(st.integers(1, 60_000), st.integers(1, 60_000), st.floats(1, 200))
def test_no_scale_makes_a_frame_beyond_the_limit(height: int, width: int, glyph: float) -> None:
    scale = choose_scale(height, width, glyph)

    assert height * width * scale * scale <= MAX_FRAME_PX * 1.001


@given(st.integers(1, 50_000))
def test_kept_parts_cover_an_axis_once(length: int) -> None:
    spans = tile_spans(length)

    covered = [(span.kept_start, span.kept_stop) for span in spans]
    assert covered[0][0] == 0
    assert covered[-1][1] == length
    assert all(left[1] == right[0] for left, right in pairwise(covered))


@given(st.integers(MAX_INPUT_SIDE_PX + 1, 50_000))
def test_tiles_are_equal_and_keep_nothing_near_their_inner_edges(length: int) -> None:
    spans = tile_spans(length)

    assert len({span.stop - span.start for span in spans}) == 1
    assert spans[-1].stop == length
    for left, right in pairwise(spans):
        assert left.stop - left.kept_stop >= TILE_OVERLAP_PX // 2 - 1
        assert right.kept_start - right.start >= TILE_OVERLAP_PX // 2 - 1


def test_letters_are_measured_on_all_of_a_large_page() -> None:
    page = np.full((5200, 1200, 3), 255, dtype=np.uint8)
    page[4300:5100] = page_of_text(1.0)

    assert estimate_glyph_height_px(page) == estimate_glyph_height_px(page_of_text(1.0))
