import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.geometry import Box
from workers.ocr.layer_evidence import Frame
from workers.ocr.pdf_image_page import ImagePage, Matrix, PlacedImage, as_page, covers

MAX_PIXELS = 60_000_000
PAGE = Box(0, 0, 72, 144)
UPRIGHT = Matrix(72, 0, 0, 144, 0, 0)


def page_of(
    width_px: int,
    height_px: int,
    matrix: Matrix = UPRIGHT,
    *,
    is_gray: bool = True,
    wanted_dpi: float = 200,
    max_pixels: int = MAX_PIXELS,
    page: Box = PAGE,
) -> ImagePage | None:
    image = PlacedImage(width_px, height_px, is_gray, matrix)
    zoom = wanted_dpi / 72
    rendered = Frame(wanted_dpi, round(page.x_max * zoom), round(page.y_max * zoom))
    return as_page(image, page, rendered=rendered, max_pixels=max_pixels)


def placed(*, transposed: bool, flipped_x: bool, flipped_y: bool, page: Box) -> Matrix:
    """Lay the unit square over a page in one of the eight ways."""
    x, y = page.x_max, page.y_max
    along_x, x_start = (-x, x) if flipped_x else (x, 0)
    along_y, y_start = (-y, y) if flipped_y else (y, 0)
    if transposed:
        return Matrix(0, along_y, along_x, 0, x_start, y_start)
    return Matrix(along_x, 0, 0, along_y, x_start, y_start)


@given(
    width_px=st.integers(1, 9),
    height_px=st.integers(1, 9),
    transposed=st.booleans(),
    flipped_x=st.booleans(),
    flipped_y=st.booleans(),
)
def test_every_pixel_lands_where_the_matrix_has_it(
    width_px: int, height_px: int, *, transposed: bool, flipped_x: bool, flipped_y: bool
) -> None:
    page = Box(0, 0, *((height_px, width_px) if transposed else (width_px, height_px)))
    matrix = placed(transposed=transposed, flipped_x=flipped_x, flipped_y=flipped_y, page=page)
    stored = np.arange(width_px * height_px * 3, dtype=np.uint8).reshape(height_px, width_px, 3)

    image_page = page_of(width_px, height_px, matrix, wanted_dpi=72, page=page)
    assert image_page is not None
    upright = image_page.upright(stored)

    assert upright.shape == (image_page.frame.height_px, image_page.frame.width_px, 3)
    for row, column in np.ndindex(height_px, width_px):
        u, v = (column + 0.5) / width_px, (row + 0.5) / height_px
        x = matrix.a * u + matrix.c * v + matrix.e
        y = matrix.b * u + matrix.d * v + matrix.f
        assert upright[int(y), int(x)].tolist() == stored[row, column].tolist()


@pytest.mark.parametrize(
    ("own_dpi", "wanted_dpi", "reduction"),
    [(200, 200, 1), (199, 200, 1), (240, 200, 1), (300, 150, 2), (600, 300, 2), (1600, 200, 8)],
)
def test_an_image_is_kept_at_the_reduction_that_gives_the_wanted_resolution(
    own_dpi: int, wanted_dpi: int, reduction: int
) -> None:
    image_page = page_of(own_dpi, 2 * own_dpi, wanted_dpi=wanted_dpi)

    assert image_page is not None
    assert image_page.reduction == reduction
    assert image_page.resized_to is None
    assert image_page.frame.dpi == pytest.approx(own_dpi / reduction)


@pytest.mark.parametrize(("own_dpi", "reduction"), [(300, 1), (390, 1), (600, 2), (1400, 4)])
def test_a_gray_image_of_much_more_resolution_is_shrunk_to_the_wanted_one(
    own_dpi: int, reduction: int
) -> None:
    image_page = page_of(own_dpi, 2 * own_dpi, wanted_dpi=200)

    assert image_page is not None
    assert image_page.reduction == reduction
    assert image_page.frame == Frame(200, 200, 400)
    assert image_page.resized_to == (200, 400)


def test_a_lying_image_is_shrunk_as_it_lies() -> None:
    image_page = page_of(600, 300, Matrix(0, 144, 72, 0, 0, 0))

    assert image_page is not None
    assert image_page.resized_to == (400, 200)


def test_a_color_image_of_much_more_resolution_is_left_to_rendering() -> None:
    assert page_of(300, 600, is_gray=False) is None
    assert page_of(400, 800, is_gray=False) is not None


def test_an_image_of_too_little_resolution_is_left_to_rendering() -> None:
    assert page_of(100, 200, wanted_dpi=200) is None


@given(
    width_px=st.integers(1, 4000), height_px=st.integers(1, 4000), wanted_dpi=st.integers(72, 600)
)
def test_a_taken_image_has_the_size_that_its_resolution_says(
    width_px: int, height_px: int, wanted_dpi: int
) -> None:
    image_page = page_of(width_px, height_px, wanted_dpi=wanted_dpi)

    if image_page is not None:
        frame = image_page.frame
        assert frame.width_px == pytest.approx(frame.dpi, abs=frame.dpi / 144 + 1)
        assert frame.height_px == pytest.approx(2 * frame.dpi, abs=frame.dpi / 144 + 1)


def test_an_odd_side_is_rounded_up_when_it_is_reduced() -> None:
    image_page = page_of(401, 801, wanted_dpi=200)

    assert image_page is not None
    assert (image_page.frame.width_px, image_page.frame.height_px) == (201, 401)


@pytest.mark.parametrize(
    "matrix",
    [
        Matrix(72, 1, -1, 144, 0, 0),  # skewed
        Matrix(60, 0, 0, 120, 6, 12),  # with a margin
        Matrix(80, 0, 0, 160, -4, -8),  # cut by the page
        Matrix(72, 0, 0, 144, 3, 0),  # beside the page
    ],
)
def test_an_image_that_is_not_the_page_exactly_is_left_to_rendering(matrix: Matrix) -> None:
    assert page_of(200, 400, matrix) is None


def test_an_image_off_by_less_than_half_a_point_is_the_page() -> None:
    assert page_of(200, 400, Matrix(72.4, 0, 0, 144.3, -0.2, 0.1)) is not None


def test_pixels_that_are_not_square_are_left_to_rendering() -> None:
    assert page_of(204, 392) is None


def test_an_image_over_the_pixel_cap_is_left_to_rendering() -> None:
    assert page_of(200, 400, max_pixels=80_000) is not None
    assert page_of(200, 400, max_pixels=79_999) is None


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (Box(0, 0, 72, 144), True),
        (Box(-9, -9, 99, 199), True),
        (Box(0.4, 0.4, 71.6, 143.6), True),
        (Box(0.6, 0, 72, 144), False),
        (Box(0, 0, 72, 143), False),
    ],
)
def test_a_box_covers_a_page_but_for_a_sliver(box: Box, *, expected: bool) -> None:
    assert covers(box, PAGE) is expected
