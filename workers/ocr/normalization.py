"""From the bytes of an image to the numbers that a model was trained on."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import cv2
import numpy as np
from numpy.typing import NDArray

_BYTE_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class Normalization:
    """``(byte / unit - mean) / std`` of each channel, blue first, every step in float32.

    A graph that takes bytes computes it itself (``graph_preparation``); ``normalized`` is for
    runtimes that take floats. Both do the same steps in the same order, so both give the same
    bits.

    Attributes:
        unit: what a byte is divided by; 1 for not at all.
        mean: of blue, green and red, in units.
        std: likewise.
    """

    unit: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @classmethod
    def of_fractions(cls, mean: float, std: float) -> Self:
        """Take mean and std of pixels in [0, 1], the same for all channels, as they are."""
        return cls(float(_BYTE_MAX), (mean, mean, mean), (std, std, std))

    @classmethod
    def of_bytes(cls, mean: Sequence[float], std: Sequence[float]) -> Self:
        """Take mean and std of pixels in [0, 1] times 255: a division less for a large image."""
        return cls(1.0, _in_bytes(mean), _in_bytes(std))

    def normalized(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Return what a model takes that does not normalize itself.

        Args:
            pixels: (N, H, W, 3) uint8 RGB.
            widths_px: see ``inference.Session``.

        Returns:
            (N, 3, H, W) float32 BGR; columns that are not pixels are 0.
        """
        count, height, width, _ = pixels.shape
        batch = np.zeros((count, 3, height, width), dtype=np.float32)
        widths = [width] * count if widths_px is None else widths_px.tolist()
        for image, planes, width_px in zip(pixels, batch, widths, strict=True):
            if width_px == 0:
                continue
            red_green_blue = cv2.split(image[:, :width_px])
            for plane, table, target in zip(
                reversed(red_green_blue), _tables(self), planes, strict=True
            ):
                target[:, :width_px] = cv2.LUT(plane, table)
        return batch


def _in_bytes(fractions: Sequence[float]) -> tuple[float, float, float]:
    blue, green, red = (np.array(fractions, dtype=np.float32) * _BYTE_MAX).tolist()
    return blue, green, red


@functools.lru_cache(maxsize=16)  # models that one process has
def _tables(normalization: Normalization) -> NDArray[np.float32]:
    """Return (3, 256) float32, the number of each byte of blue, green and red."""
    numbers = np.arange(_BYTE_MAX + 1, dtype=np.float32) / np.float32(normalization.unit)
    mean, std = (
        np.array(each, dtype=np.float32)[:, np.newaxis]
        for each in (normalization.mean, normalization.std)
    )
    tables: NDArray[np.float32] = (numbers - mean) / std
    return tables
