"""How a page stands: the classifier that looks at the whole page.

What it answers is believed only where the page's lines agree (``workers.ocr.upright``).
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.bundle import OrientationModel
from workers.ocr.errors import InferenceError
from workers.ocr.inference import Session

QUARTER_TURNS = 4


class OrientationClassifier:
    """An orientation model behind a session, from page pixels to probabilities."""

    def __init__(self, session: Session, model: OrientationModel) -> None:
        self._session = session
        self._model = model

    @property
    def sure_from(self) -> float:
        return self._model.sure_from

    def classify(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Tell how far a page is turned.

        The whole page is shown, shrunk and centered on a square of its own color: the model's
        authors cut a square out of the middle, and on a page whose text is at its top the middle
        is empty.

        Args:
            pixels: (H, W, 3) uint8 RGB, page pixels.

        Returns:
            (4,) the probability that the page stands turned clockwise by 0, 90, 180 and 270
            degrees.

        Raises:
            InferenceError: the model's answer does not fit its input.
        """
        output = self._session.run(self._square(pixels)[np.newaxis])
        if output.shape != (1, QUARTER_TURNS):
            raise InferenceError(f"the orientation model answered with the shape {output.shape}")
        probabilities: NDArray[np.float32] = output[0]
        return probabilities

    def warm_up(self) -> None:
        """Run once on a blank page."""
        self.classify(np.full((32, 32, 3), 255, dtype=np.uint8))

    def _square(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        side = self._model.input_side_px
        height_px, width_px = pixels.shape[:2]
        scale = side / max(height_px, width_px)
        size = (max(1, round(width_px * scale)), max(1, round(height_px * scale)))
        shrunk = cv2.resize(
            pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        )
        paper = np.median(shrunk.reshape(-1, 3), axis=0).astype(np.uint8)
        square = np.broadcast_to(paper, (side, side, 3)).copy()
        left, top = (side - size[0]) // 2, (side - size[1]) // 2
        square[top : top + size[1], left : left + size[0]] = shrunk
        return square
