import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import CHARSET, InkDetector, InkReader
from workers.ocr.arithmetic_check import check_arithmetic
from workers.ocr.bundle import read_manifest
from workers.ocr.detection import Detector
from workers.ocr.errors import ArithmeticCheckError, ModelFileError
from workers.ocr.golden import GOLDEN_LINES
from workers.ocr.inference import Session
from workers.ocr.recognition import Recognizer
from workers.ocr.recognition_limits import RecognitionLimits
from workers.ocr.width_buckets import CPU_BUCKETS_PX

MANIFEST = read_manifest()
PLAIN = [chr(code) for code in range(33, 127)] + [" "]


class LineDetector:
    """Finds a line wherever the golden page has one, the first being the widest."""

    def __init__(self, line_count: int = len(GOLDEN_LINES)) -> None:
        self._line_count = line_count

    def run(
        self,
        pixels: NDArray[np.uint8],
        widths_px: NDArray[np.int64] | None = None,  # noqa: ARG002  pages have no padding
    ) -> NDArray[np.float32]:
        output = np.full((1, 1, *pixels.shape[1:3]), 0.01, dtype=np.float32)
        for row in range(self._line_count):
            top = pixels.shape[1] * (20 + 60 * row) // 224
            output[0, 0, top : top + 16, 40 : 720 - 60 * row] = 0.9
        return output


class Reciter:
    """Answers with lines, one after the other, whatever it is shown."""

    def __init__(self, lines: tuple[str, ...] = GOLDEN_LINES) -> None:
        self._lines = list(lines)

    def run(
        self,
        pixels: NDArray[np.uint8],
        widths_px: NDArray[np.int64] | None = None,  # noqa: ARG002  whatever it is shown
    ) -> NDArray[np.float32]:
        text = self._lines.pop(0)
        steps = text.replace("rr", "r|r").replace(
            "11", "1|1"
        )  # equal letters need a blank between them
        output = np.zeros((len(pixels), len(steps), len(PLAIN) + 1), dtype=np.float32)
        for step, letter in enumerate(steps):
            output[:, step, 0 if letter == "|" else PLAIN.index(letter) + 1] = 0.9
        return output


def check(detector: Session, reader: Session, charset: list[str] | tuple[str, ...] = PLAIN) -> None:
    limits = RecognitionLimits(1, 262_144, CPU_BUCKETS_PX)
    check_arithmetic(
        Detector(detector, MANIFEST.detection),
        Recognizer(reader, MANIFEST.recognition, charset, limits),
        crop_height_px=48,
        charset=charset,
    )


def test_arithmetic_that_reads_the_golden_page_passes() -> None:
    check(LineDetector(), Reciter())


def test_one_wrong_character_is_refused() -> None:
    wrong = (*GOLDEN_LINES[:2], "Paid 2065.87")

    with pytest.raises(ArithmeticCheckError, match=r"'Paid 2065\.37' was read as 'Paid 2065\.87'"):
        check(LineDetector(), Reciter(wrong))


def test_a_line_that_is_not_found_is_refused() -> None:
    with pytest.raises(ArithmeticCheckError, match="has 3 lines, and 2 were found"):
        check(LineDetector(2), Reciter())


def test_letters_found_apart_are_refused() -> None:
    with pytest.raises(ArithmeticCheckError, match="has 3 lines"):
        check(InkDetector(), InkReader(), CHARSET)


def test_lines_outside_a_charset_have_to_be_found_only() -> None:
    check(LineDetector(), InkReader(), CHARSET)


def test_an_operator_is_needed_where_no_precision_passes() -> None:
    assert issubclass(ArithmeticCheckError, ModelFileError)
