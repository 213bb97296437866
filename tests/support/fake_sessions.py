"""Stand-ins for models: ink is text, and its gray value is the letter."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.ocr.bundle import ModelBundle, read_manifest
from workers.ocr.errors import InferenceError
from workers.ocr.inference import Session

LETTERS = "ABCDEFGHIJ"
CHARSET = (*LETTERS, " ")
STEP_PX = 8
_GRAY_STEP = 10
_INK_BELOW = 120


def gray_of(letter: str) -> int:
    """Return the gray value that ``InkReader`` reads as the letter, in the middle of its range."""
    return CHARSET.index(letter) * _GRAY_STEP + _GRAY_STEP // 2


def barcode(text: str, *, step_count: int = 1, height_px: int = 48) -> NDArray[np.uint8]:
    """Paint a crop that ``InkReader`` reads as the text; ``-`` is a blank step."""
    grays = [255 if letter == "-" else gray_of(letter) for letter in text]
    columns = np.repeat(np.array(grays, dtype=np.uint8), STEP_PX * step_count)
    return np.broadcast_to(columns[None, :, None], (height_px, columns.size, 3)).copy()


class InkDetector:
    """Finds text wherever a pixel is dark."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def run(
        self,
        pixels: NDArray[np.uint8],
        widths_px: NDArray[np.int64] | None = None,  # noqa: ARG002  pages have no padding
    ) -> NDArray[np.float32]:
        self.shapes.append(pixels.shape)
        is_dark = pixels.mean(axis=3)[:, np.newaxis] < _INK_BELOW
        return np.where(is_dark, np.float32(0.9), np.float32(0.01))


class InkReader:
    """Reads the gray value in the middle of every step; white and padding are blank."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        self.shapes.append(pixels.shape)
        gray = pixels[:, 24, STEP_PX // 2 :: STEP_PX].mean(axis=2)
        is_ink = gray < _INK_BELOW
        if widths_px is not None:
            columns = np.arange(STEP_PX // 2, pixels.shape[2], STEP_PX)
            is_ink &= columns < widths_px[:, np.newaxis]
        classes = np.where(is_ink, (gray // _GRAY_STEP).astype(int) + 1, 0)
        classes = np.minimum(classes, len(CHARSET))
        output = np.zeros((*classes.shape, len(CHARSET) + 1), dtype=np.float32)
        np.put_along_axis(output, classes[..., None], np.float32(0.75), axis=2)
        return output


class FailingSession:
    """Passes minibatches on, but raises on those that a condition picks."""

    def __init__(
        self,
        session: Session,
        condition: Callable[[NDArray[np.uint8]], bool],
        error: Callable[[], InferenceError],
    ) -> None:
        self._session = session
        self._condition = condition
        self._error = error

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        if self._condition(pixels):
            raise self._error()
        return self._session.run(pixels, widths_px)


class FixedSession:
    """Answers everything with the same array."""

    def __init__(self, output: NDArray[np.float32]) -> None:
        self._output = output

    def run(
        self,
        pixels: NDArray[np.uint8],  # noqa: ARG002  a stand-in
        widths_px: NDArray[np.int64] | None = None,  # noqa: ARG002  likewise
    ) -> NDArray[np.float32]:
        return self._output


def ink_bundle() -> ModelBundle:
    """Return the default bundle's manifest with the charset of ``InkReader``."""
    return ModelBundle(manifest=read_manifest(), models_dir=Path("unused"), charset=CHARSET)
