import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from workers.ocr.direct_line import direct_quad, is_certain
from workers.ocr.long_lines import PlacedCharacter
from workers.ocr.recognition import RecognizedLine


def paper(height: int, width: int) -> NDArray[np.uint8]:
    return np.full((height, width, 3), 255, dtype=np.uint8)


def letters(
    pixels: NDArray[np.uint8], *, top: int, height: int, left: int = 20, count: int = 10
) -> NDArray[np.uint8]:
    """Draw bars as wide as letters, one beside the other."""
    for letter in range(count):
        x = left + letter * height
        pixels[top : top + height, x : x + height * 2 // 5] = 0
    return pixels


def reading(text: str, confidence: float) -> RecognizedLine:
    return RecognizedLine(tuple(PlacedCharacter(each, 0.0, 8.0, confidence) for each in text))


def test_one_line_is_where_its_ink_is() -> None:
    quad = direct_quad(letters(paper(40, 400), top=8, height=20))

    assert quad is not None
    assert quad.angle_deg == 0
    box = quad.box
    assert 0 < box.y_min <= 8
    assert 28 <= box.y_max < 40
    assert 10 < box.x_min <= 20
    assert 210 <= box.x_max < 225


def test_white_letters_on_black_are_a_line_too() -> None:
    dark = 255 - letters(paper(40, 400), top=8, height=20)

    assert direct_quad(dark) is not None


def test_a_line_that_fills_its_image_is_taken_as_it_is() -> None:
    quad = direct_quad(letters(paper(20, 195), top=0, height=20, left=0))

    assert quad is not None
    assert quad.box.y_max - quad.box.y_min == 20
    assert quad.box.x_min == 0


@pytest.mark.parametrize(("height", "top", "line_height"), [(51, 10, 20), (48, 5, 33), (40, 20, 4)])
def test_what_is_too_high_or_too_low_is_no_single_line(
    height: int, top: int, line_height: int
) -> None:
    assert direct_quad(letters(paper(height, 500), top=top, height=line_height)) is None


def test_blank_paper_and_its_grain_hold_no_line() -> None:
    grain = np.random.default_rng(0).integers(240, 256, (32, 300, 3), dtype=np.uint8)

    assert direct_quad(paper(32, 300)) is None
    assert direct_quad(grain) is None


def test_a_single_letter_is_no_line() -> None:
    assert direct_quad(letters(paper(32, 300), top=6, height=20, count=1)) is None


def test_two_lines_are_not_one() -> None:
    two = letters(letters(paper(32, 300), top=2, height=12), top=18, height=12)

    assert direct_quad(two) is None


def test_dots_over_letters_are_no_line_of_their_own() -> None:
    dotted = letters(paper(32, 300), top=10, height=18)
    dotted[3:6, 20:200:20] = 0

    quad = direct_quad(dotted)

    assert quad is not None
    assert quad.box.y_min <= 3


def test_two_columns_are_not_one_line() -> None:
    apart = letters(letters(paper(32, 600), top=6, height=16), top=6, height=16, left=400)

    assert direct_quad(apart) is None


@pytest.mark.parametrize(("gray", "expected"), [(200, False), (235, True)])
def test_text_that_is_faint_beside_black_is_not_cut_away(gray: int, expected: bool) -> None:  # noqa: FBT001  a parameter of the test
    pixels = letters(paper(40, 500), top=8, height=20)
    pixels[10:26, 260:300] = gray  # nearer to paper than to black

    assert (direct_quad(pixels) is not None) is expected


@given(
    height=st.integers(1, 60),
    width=st.integers(1, 120),
    seed=st.integers(0, 1000),
    ink=st.floats(0, 1),
)
def test_a_quad_lies_in_its_image(height: int, width: int, seed: int, ink: float) -> None:
    random = np.random.default_rng(seed)
    pixels = paper(height, width)
    pixels[random.random((height, width)) < ink**4] = 0

    quad = direct_quad(pixels)

    if quad is not None:
        box = quad.box
        assert 0 <= box.x_min < box.x_max <= width
        assert 0 <= box.y_min < box.y_max <= height


@pytest.mark.parametrize(
    ("text", "confidence", "expected"),
    [("Total", 0.99, True), ("Total", 0.5, False), ("", 0.0, False), (" ", 0.99, False)],
)
def test_only_sure_text_stands(text: str, confidence: float, expected: bool) -> None:  # noqa: FBT001  a parameter of the test
    assert is_certain(reading(text, confidence)) is expected
