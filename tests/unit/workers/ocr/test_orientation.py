import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import FixedSession
from workers.ocr.bundle import OrientationModel, read_manifest
from workers.ocr.errors import InferenceError
from workers.ocr.orientation import OrientationClassifier

ANSWER = np.array([[0.1, 0.6, 0.2, 0.1]], dtype=np.float32)


class RecordingSession:
    def __init__(self) -> None:
        self.batches: list[NDArray[np.uint8]] = []

    def run(
        self,
        pixels: NDArray[np.uint8],
        widths_px: NDArray[np.int64] | None = None,  # noqa: ARG002  pages have no padding
    ) -> NDArray[np.float32]:
        self.batches.append(pixels)
        return ANSWER


def orientation_model() -> OrientationModel:
    model = read_manifest().orientation
    assert model is not None
    return model


@pytest.mark.parametrize("size", [(30, 40), (2000, 100), (1, 1), (700, 3000)])
def test_a_page_of_any_shape_is_classified(size: tuple[int, int]) -> None:
    session = RecordingSession()
    classifier = OrientationClassifier(session, orientation_model())

    probabilities = classifier.classify(np.full((*size, 3), 200, dtype=np.uint8))

    assert probabilities.tolist() == ANSWER[0].tolist()
    assert session.batches[0].shape == (1, 224, 224, 3)


def test_the_square_around_a_page_has_the_color_of_its_paper() -> None:
    session = RecordingSession()
    page = np.full((400, 100, 3), (250, 240, 200), dtype=np.uint8)
    page[100:110, 20:80] = 0

    OrientationClassifier(session, orientation_model()).classify(page)

    assert np.unique(session.batches[0][0, 5], axis=0).tolist() == [[250, 240, 200]]


def test_an_answer_of_another_shape_is_an_inference_error() -> None:
    session = FixedSession(np.zeros((1, 3), dtype=np.float32))

    with pytest.raises(InferenceError):
        OrientationClassifier(session, orientation_model()).classify(
            np.zeros((9, 9, 3), dtype=np.uint8)
        )
