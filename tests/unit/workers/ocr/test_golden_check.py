import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import CHARSET, FailingSession, InkDetector, InkReader
from workers.ocr.bundle import read_manifest
from workers.ocr.detection import Detector
from workers.ocr.errors import GoldenCheckError, ModelFileError, OutOfMemoryError
from workers.ocr.golden_check import GOLDEN_LINES, check_models, golden_page
from workers.ocr.inference import Session
from workers.ocr.recognition import RecognitionLimits, Recognizer
from workers.ocr.width_buckets import CPU_BUCKETS_PX

MANIFEST = read_manifest()
PLAIN = [chr(code) for code in range(33, 127)] + [" "]


class GoldenDetector(InkDetector):
    """Finds the golden lines as wholes, and not their letters."""

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        output = np.full((1, 1, *batch.shape[2:]), 0.01, dtype=np.float32)
        scale = batch.shape[3] / 640
        for quad in golden_page()[1]:
            x_min, y_min, x_max, y_max = (
                round(value * scale)
                for value in (quad.box.x_min, quad.box.y_min, quad.box.x_max, quad.box.y_max)
            )
            output[0, 0, y_min + 6 : y_max - 6, x_min + 6 : x_max - 6] = 0.9
        return output


class GoldenReader:
    """Answers with the golden lines, one after the other, whatever it is shown."""

    def __init__(self, lines: tuple[str, ...] = GOLDEN_LINES) -> None:
        # The widest crop is read first.
        self._lines = [lines[3], lines[1], lines[2], lines[0]]

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        text = self._lines.pop(0)
        output = np.zeros((len(batch), 2 * len(text), len(PLAIN) + 1), dtype=np.float32)
        for step, letter in enumerate(text):
            output[:, 2 * step, PLAIN.index(letter) + 1] = 0.9
            output[:, 2 * step + 1, 0] = 0.9
        return output


def check(detector: Session, reader: Session, charset: list[str] | tuple[str, ...] = PLAIN) -> None:
    check_models(
        Detector(detector, MANIFEST.detection),
        Recognizer(
            reader,
            MANIFEST.recognition,
            charset,
            RecognitionLimits(1, 262_144, CPU_BUCKETS_PX),
        ),
        crop_height_px=48,
        charset=charset,
    )


def test_models_that_read_the_golden_page_pass() -> None:
    check(GoldenDetector(), GoldenReader())


def test_one_wrong_character_is_refused() -> None:
    wrong = (*GOLDEN_LINES[:1], "Total: 1,200.50", *GOLDEN_LINES[2:])

    with pytest.raises(GoldenCheckError, match=r"08\.50' was read as .*00\.50'"):
        check(GoldenDetector(), GoldenReader(wrong))


def test_lines_that_are_not_found_are_refused() -> None:
    blind = FailingSession(InkDetector(), lambda _: False, lambda: OutOfMemoryError("full"))

    with pytest.raises(GoldenCheckError, match="4 lines were printed"):
        check(blind, InkReader(), CHARSET)


def test_lines_outside_a_charset_have_to_be_found_only() -> None:
    check(GoldenDetector(), InkReader(), CHARSET)


def test_an_operator_is_needed_where_no_precision_passes() -> None:
    assert issubclass(GoldenCheckError, ModelFileError)
