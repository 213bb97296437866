import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.normalization import Normalization

MEAN = (0.406, 0.456, 0.485)
STD = (0.225, 0.224, 0.229)


def test_channels_are_normalized_in_the_order_of_the_model() -> None:
    red = np.zeros((1, 4, 4, 3), dtype=np.uint8)
    red[..., 0] = 255

    batch = Normalization.of_bytes(MEAN, STD).normalized(red)

    assert batch.shape == (1, 3, 4, 4)
    assert batch[0, :, 2, 2] == pytest.approx(
        [-0.406 / 0.225, -0.456 / 0.224, (1 - 0.485) / 0.229], abs=1e-5
    )


def test_fractions_are_normalized_with_the_steps_of_float32() -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 1, 256, 1).repeat(3, axis=3)

    batch = Normalization.of_fractions(0.3, 0.7).normalized(pixels)

    expected = (pixels[0, 0, :, 0] / np.float32(255) - np.float32(0.3)) / np.float32(0.7)
    assert np.array_equal(batch[0], np.broadcast_to(expected, (3, 1, 256)))


def test_bytes_are_normalized_with_the_steps_of_float32() -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 1, 256, 1).repeat(3, axis=3)

    batch = Normalization.of_bytes(MEAN, STD).normalized(pixels)

    mean, std = (np.array(each, dtype=np.float32) * 255 for each in (MEAN, STD))
    expected = (pixels[0, 0].astype(np.float32) - mean) / std
    assert np.array_equal(batch[0, :, 0], expected.T)


@given(widths=st.lists(st.integers(0, 6), min_size=1, max_size=4), byte=st.integers(0, 255))
def test_columns_beyond_a_width_are_0_and_the_others_as_without_padding(
    widths: list[int], byte: int
) -> None:
    normalization = Normalization.of_fractions(0.5, 0.5)
    pixels = np.full((len(widths), 3, 6, 3), byte, dtype=np.uint8)

    batch = normalization.normalized(pixels, np.array(widths))

    whole = normalization.normalized(pixels)
    for image, full, width in zip(batch, whole, widths, strict=True):
        assert np.array_equal(image[:, :, :width], full[:, :, :width])
        assert not image[:, :, width:].any()
