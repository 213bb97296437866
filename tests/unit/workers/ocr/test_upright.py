import dataclasses

import numpy as np
import pytest

from tests.support.fake_sessions import FixedSession
from tests.support.glyph_pages import SignReader, find_sign_lines, sign_page
from workers.ocr.bundle import OrientationModel, read_manifest
from workers.ocr.geometry import Quad
from workers.ocr.orientation import OrientationClassifier
from workers.ocr.page_image import PageImage
from workers.ocr.upright import PageUprighter, sample_lines, turned_page

CROP_HEIGHT_PX = 48
UNSURE = (0.4, 0.3, 0.2, 0.1)


def orientation_model() -> OrientationModel:
    model = read_manifest().orientation
    assert model is not None
    return model


def uprighter(probabilities: tuple[float, ...], reader: SignReader) -> PageUprighter:
    session = FixedSession(np.array([probabilities], dtype=np.float32))
    classifier = OrientationClassifier(session, orientation_model())
    return PageUprighter(find_sign_lines, classifier, reader, CROP_HEIGHT_PX)


def sure_of(quarter_turns: int) -> tuple[float, ...]:
    return tuple(0.94 if turns == quarter_turns else 0.02 for turns in range(4))


@pytest.mark.parametrize("opinion", [UNSURE, *(sure_of(turns) for turns in (1, 2, 3))])
@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize(("letter", "downwards"), [("a", False), ("字", False), ("字", True)])
def test_a_page_that_lies_is_turned_upright_whatever_the_classifier_says(
    opinion: tuple[float, ...],
    turns: int,
    letter: str,
    downwards: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    upright = sign_page(downwards=downwards)
    lying = dataclasses.replace(turned_page(upright, turns), rotation_deg=0)

    found = uprighter(opinion, SignReader(letter)).find_lines(lying)

    assert found.page.rotation_deg == -90 * turns % 360
    assert np.array_equal(found.page.pixels, upright.pixels)


@pytest.mark.parametrize("downwards", [False, True])
def test_a_page_that_the_classifier_is_sure_of_is_not_read_twice(
    downwards: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    page, reader = sign_page(downwards=downwards), SignReader("字")

    found = uprighter(sure_of(0), reader).find_lines(page)

    assert found.page is page
    assert reader.crop_count == 0


@pytest.mark.parametrize("opinion", [UNSURE, *(sure_of(turns) for turns in range(4))])
def test_a_page_without_text_is_left_alone(opinion: tuple[float, ...]) -> None:
    page = PageImage(0, np.full((300, 200, 3), 255, dtype=np.uint8), dpi=200.0, rotation_deg=90)

    found = uprighter(opinion, SignReader("a")).find_lines(page)

    assert found.page is page
    assert found.detections == ()


def test_text_that_nobody_can_read_is_left_alone() -> None:
    page = sign_page(downwards=False)
    page = dataclasses.replace(page, pixels=np.ascontiguousarray(np.rot90(page.pixels)))
    blurred = np.where(page.pixels < 128, 0, page.pixels).astype(np.uint8)
    blurred[:, ::26] = 255

    found = uprighter(sure_of(2), SignReader("")).find_lines(PageImage(0, blurred, dpi=200.0))

    assert found.page.rotation_deg == 0
    assert found.page.pixels is blurred


def test_lines_are_in_pixels_of_the_turned_page() -> None:
    upright = sign_page(downwards=False)
    lying = dataclasses.replace(turned_page(upright, 1), rotation_deg=0)

    found = uprighter(sure_of(1), SignReader("a")).find_lines(lying)

    expected = find_sign_lines(upright.pixels)
    assert len(found.detections) == len(expected)
    assert all(
        np.array_equal(left.quad.corners, right.quad.corners)
        for left, right in zip(found.detections, expected, strict=True)
    )


def test_a_turn_adds_to_the_turn_that_the_file_asked_for() -> None:
    page = PageImage(3, np.zeros((4, 6, 3), dtype=np.uint8), dpi=200.0, rotation_deg=270)

    turned = turned_page(page, 2)

    assert turned.rotation_deg == 90
    assert (turned.page_index, turned.width_px, turned.height_px) == (3, 6, 4)


def test_four_quarter_turns_are_none() -> None:
    page = PageImage(0, np.arange(72, dtype=np.uint8).reshape(4, 6, 3), dpi=200.0)

    once = turned_page(turned_page(page, 1), 3)

    assert np.array_equal(once.pixels, page.pixels)
    assert once.rotation_deg == 0


def test_the_sample_is_the_longest_lines_along_the_main_axis() -> None:
    def line(width: float, height: float) -> Quad:
        corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float32)
        return Quad(corners)

    wide = [line(width, 20) for width in (90, 300, 200, 500, 100, 400, 600)]

    sample = sample_lines([line(20, 700), *wide, line(22, 20)])

    assert [quad.width for quad in sample] == [600, 500, 400, 300, 200]
