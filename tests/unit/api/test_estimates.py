import pytest

from api.estimates import guess_page_pixels, guess_pages
from workers.ocr.formats import MediaType

A4_AT_200_DPI = 1_654 * 2_339


@pytest.mark.parametrize(
    ("media_type", "size_bytes", "pages"),
    [
        (MediaType.PDF, 1_000, 1),
        (MediaType.PDF, 1_000_000, 20),
        (MediaType.PDF, 2**31, 10_000),
        (MediaType.TIFF, 1_000_000, 5),
        (MediaType.PNG, 100_000_000, 1),
        (MediaType.JPEG, 100_000_000, 1),
    ],
)
def test_pages_are_guessed_from_type_and_size(
    media_type: MediaType, size_bytes: int, pages: int
) -> None:
    assert guess_pages(media_type, size_bytes, max_pages=10_000) == pages


def test_a_page_is_guessed_to_be_a4() -> None:
    pixels = guess_page_pixels(None, dpi=200, max_pixels=60_000_000)

    assert pixels == pytest.approx(A4_AT_200_DPI, rel=0.01)


def test_an_image_has_the_pixels_that_it_states() -> None:
    assert guess_page_pixels(1_234, dpi=200, max_pixels=60_000_000) == 1_234


def test_no_page_has_more_pixels_than_are_read() -> None:
    assert guess_page_pixels(2**40, dpi=200, max_pixels=60_000_000) == 60_000_000
