import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from bench.page_files import bmp

pages = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda size: arrays.arrays(np.uint8, (*size, 3))
)


@given(pixels=pages)
def test_another_reader_finds_the_same_pixels(pixels: np.ndarray) -> None:
    with Image.open(io.BytesIO(bmp(pixels, dpi=200.0))) as image:
        assert np.array_equal(np.asarray(image.convert("RGB")), pixels)


def test_the_resolution_is_told() -> None:
    with Image.open(io.BytesIO(bmp(np.zeros((2, 2, 3), np.uint8), dpi=300.0))) as image:
        assert round(image.info["dpi"][0]) == 300
