import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from workers.ocr.encoded_page import PageFrame, encode_page
from workers.ocr.errors import PageTooLargeError
from workers.ocr.page_image import PageImage


def page(*, rotation_deg: int = 0) -> PageImage:
    """Return a page of 60 by 40 pixels that is red at its top left and white elsewhere."""
    pixels = np.full((40, 60, 3), 255, np.uint8)
    pixels[:16, :16] = (255, 0, 0)
    return PageImage(0, pixels, dpi=200.0, rotation_deg=rotation_deg)


def decoded(jpeg: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(jpeg)) as image:
        assert image.format == "JPEG"
        return np.asarray(image.convert("RGB"))


def is_red(pixel: NDArray[np.uint8]) -> bool:
    return bool(pixel[0] > 200 and pixel[1] < 60 and pixel[2] < 60)


def test_colors_stay() -> None:
    pixels = decoded(encode_page(page(), None))

    assert pixels.shape == (40, 60, 3)
    assert is_red(pixels[4, 4])
    assert pixels[30, 50].min() > 240


@pytest.mark.parametrize(
    ("stored_deg", "read_deg", "corner"),
    [(0, 0, (4, 4)), (0, 90, (4, -5)), (0, 180, (-5, -5)), (0, 270, (-5, 4)), (270, 0, (4, -5))],
)
def test_a_page_is_turned_as_it_was_read(
    stored_deg: int, read_deg: int, corner: tuple[int, int]
) -> None:
    is_turned = (read_deg - stored_deg) % 180 != 0
    frame = PageFrame(40, 60, read_deg) if is_turned else PageFrame(60, 40, read_deg)

    pixels = decoded(encode_page(page(rotation_deg=stored_deg), frame))

    assert pixels.shape[:2] == (frame.height_px, frame.width_px)
    assert is_red(pixels[corner])


@pytest.mark.parametrize("shape", [(1, 70_000, 3), (70_000, 1, 3)])
def test_a_page_that_no_jpeg_can_hold_is_a_named_error(shape: tuple[int, int, int]) -> None:
    long_page = PageImage(0, np.zeros(shape, np.uint8), dpi=200.0, rotation_deg=0)

    with pytest.raises(PageTooLargeError):
        encode_page(long_page, None)


def test_a_page_that_was_read_at_half_its_resolution_is_as_large_as_its_result() -> None:
    pixels = decoded(encode_page(page(), PageFrame(30, 20, 0)))

    assert pixels.shape == (20, 30, 3)
    assert is_red(pixels[2, 2])
