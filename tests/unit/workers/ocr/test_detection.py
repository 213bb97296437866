import numpy as np
import pytest

from tests.support.fake_sessions import FixedSession, InkDetector
from workers.ocr.bundle import read_manifest
from workers.ocr.detection import CUDA_SIDE_STEP_PX, Detector
from workers.ocr.errors import InferenceError

MODEL = read_manifest().detection


def white_page(height: int, width: int) -> np.ndarray:
    return np.full((height, width, 3), 255, dtype=np.uint8)


def test_a_blank_page_has_no_lines() -> None:
    assert Detector(InkDetector(), MODEL).detect(white_page(200, 300)) == []


def test_a_line_is_found_where_it_stands_on_the_page() -> None:
    page = white_page(2000, 3000)
    page[600:660, 900:2100] = 0

    (detection,) = Detector(InkDetector(), MODEL).detect(page)

    center = detection.quad.corners.mean(axis=0)
    assert center.tolist() == pytest.approx([1500, 630], abs=2)
    assert detection.quad.box.x_min < 900
    assert detection.quad.box.x_max > 2100
    assert detection.quad.box.y_min < 600
    assert detection.quad.box.y_max > 660


def test_inputs_are_multiples_of_32_whatever_the_page() -> None:
    session = InkDetector()

    Detector(session, MODEL).detect(white_page(201, 333))

    assert session.shapes == [(1, 224, 352, 3)]


def page_with_small_marks(height: int, width: int) -> np.ndarray:
    """A page whose marks are as small as letters may be, so that it is not shrunk."""
    page = white_page(height, width)
    for row in range(20, height // 2, 50):
        for column in range(20, width - 40, 60):
            page[row : row + 7, column : column + 24] = 0
    return page


@pytest.mark.parametrize(("height", "width"), [(6000, 400), (400, 6000)])
def test_tall_and_wide_pages_are_tiled_without_losing_or_doubling_a_line(
    height: int, width: int
) -> None:
    session = InkDetector()
    page = page_with_small_marks(height, width)

    detections = Detector(session, MODEL).detect(page)

    mark_count = len(range(20, height // 2, 50)) * len(range(20, width - 40, 60))
    assert len(session.shapes) > 1
    assert max(max(shape[1:3]) for shape in session.shapes) <= 1600
    assert len(detections) == mark_count


def test_a_line_across_a_tile_border_stays_whole() -> None:
    page = page_with_small_marks(400, 6000)
    page[300:307, 20:5980] = 0

    detections = Detector(InkDetector(), MODEL).detect(page)

    assert max(detection.quad.width for detection in detections) > 5950


def test_a_line_that_lies_on_the_edge_is_clipped_to_the_page() -> None:
    page = white_page(300, 400)
    page[280:300, 100:400] = 0

    (detection,) = Detector(InkDetector(), MODEL).detect(page)

    assert detection.quad.box.x_max <= 400
    assert detection.quad.box.y_max <= 300


def test_an_answer_of_the_wrong_shape_is_an_error() -> None:
    session = FixedSession(np.zeros((1, 1, 8, 8), dtype=np.float32))

    with pytest.raises(InferenceError, match="shape"):
        Detector(session, MODEL).detect(white_page(64, 64))


@pytest.mark.parametrize("size", [(200, 300), (1600, 1000), (400, 6000), (3, 2000)])
def test_few_shapes_are_all_warmed_up(size: tuple[int, int]) -> None:
    warm, used = InkDetector(), InkDetector()
    page = page_with_small_marks(*size)

    Detector(warm, MODEL, side_step_px=CUDA_SIDE_STEP_PX).warm_up()
    Detector(used, MODEL, side_step_px=CUDA_SIDE_STEP_PX).detect(page)

    assert set(used.shapes) <= set(warm.shapes)
    assert len(warm.shapes) == 25


def test_a_line_stands_where_it_stood_when_the_input_is_padded_to_few_shapes() -> None:
    page = white_page(700, 900)
    page[600:660, 300:800] = 0
    page[680:700, 100:900] = 0

    few = Detector(InkDetector(), MODEL, side_step_px=CUDA_SIDE_STEP_PX).detect(page)

    expected = Detector(InkDetector(), MODEL).detect(page)
    assert len(few) == len(expected) == 2
    for detection, other in zip(few, expected, strict=True):
        assert np.array_equal(detection.quad.corners, other.quad.corners)


def test_few_shapes_keep_to_the_multiple_of_the_model() -> None:
    session = InkDetector()
    model = MODEL.model_copy(update={"size_multiple": 128})

    Detector(session, model, side_step_px=CUDA_SIDE_STEP_PX).detect(white_page(700, 900))

    assert session.shapes == [(1, 1280, 1280, 3)]


def test_warming_up_runs_the_model() -> None:
    session = InkDetector()

    Detector(session, MODEL).warm_up()

    assert session.shapes == [(1, 320, 320, 3)]
