"""Pages as low as a line: read without detection where that is sure, and with it elsewhere."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import CHARSET, FailingSession, InkDetector, InkReader, gray_of
from tests.support.ink_engines import (
    SilentReader,
    engine,
    has_letter_b,
    page_of,
    poisoned,
    read_one,
    text_of,
    without_seconds,
)
from workers.ocr.errors import InferenceError, OutOfMemoryError, PoisonedContextError
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.result import PageResult


class SureReader(InkReader):
    """Is sure of every letter but B."""

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        output = super().run(pixels, widths_px)
        output[output > 0] = 0.99
        output[:, :, CHARSET.index("B") + 1] *= np.float32(0.5)
        return output


def low_page(letter: str, page_index: int = 0) -> PageImage:
    """A page as low as the one line on it."""
    pixels = np.full((40, 700, 3), 255, dtype=np.uint8)
    pixels[10:34, 20:300] = gray_of(letter)
    return PageImage(page_index, pixels, dpi=200.0, rotation_deg=90)


def test_a_low_page_is_read_without_detection() -> None:
    detector, reader = InkDetector(), SureReader()

    result = read_one(engine(detector, reader), low_page("A"))

    assert isinstance(result, PageResult)
    assert text_of(result)[0] == "A"
    assert (result.crops_found, result.crops_kept, result.rotation_deg) == (1, 1, 90)
    box = result.lines[0].quad.box
    assert (box.x_min, box.x_max) == pytest.approx((20, 300), abs=6)
    assert (box.y_min, box.y_max) == pytest.approx((10, 34), abs=6)
    assert not detector.shapes
    assert len(reader.shapes) == 1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_low_page_that_is_not_read_surely_goes_through_detection(device: str) -> None:
    detector = InkDetector()

    result = read_one(engine(detector, SureReader(), device=device), low_page("B"))

    assert isinstance(result, PageResult)
    assert text_of(result)[0] == "B"
    assert len(detector.shapes) == 1
    assert result.lines[0].detection_score < 1
    assert result.seconds.detect > 0


def test_a_low_page_in_which_nothing_is_read_goes_through_detection() -> None:
    detector = InkDetector()

    result = read_one(engine(detector, SilentReader()), low_page("A"))

    assert isinstance(result, PageResult)
    assert result.lines == ()
    assert len(detector.shapes) == 1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("threads", [1, 3])
def test_low_pages_among_others_read_as_they_do_alone(device: str, threads: int) -> None:
    pages = [
        low_page("AB"[i // 2 % 2], i) if i % 2 else page_of(*"ABC"[: i % 4], page_index=i)
        for i in range(30)
    ]

    outcomes = list(engine(reader=SureReader(), device=device, threads=threads).read_pages(pages))

    assert [outcome.page_index for outcome in outcomes] == list(range(30))
    assert [without_seconds(outcome) for outcome in outcomes] == [
        without_seconds(read_one(engine(reader=SureReader(), device=device), page))
        for page in pages
    ]


@pytest.mark.parametrize("letter", ["A", "B"])
def test_a_low_page_that_cannot_be_read_is_that_pages_failure(letter: str) -> None:
    reader = FailingSession(SureReader(), has_letter_b, lambda: OutOfMemoryError("full"))
    pages = [low_page("B"), low_page(letter, 1)]

    first, second = engine(reader=reader).read_pages(pages)

    assert isinstance(first, PageFailure)
    assert first.code == "gpu_out_of_memory"
    assert isinstance(second, PageResult) == (letter == "A")


def test_a_low_page_whose_late_detection_fails_is_that_pages_failure() -> None:
    detector = FailingSession(InkDetector(), lambda _: True, lambda: InferenceError("no"))

    first, second = engine(detector, SureReader()).read_pages([low_page("B"), low_page("A", 1)])

    assert isinstance(first, PageFailure)
    assert isinstance(second, PageResult)


def test_a_context_poisoned_by_a_low_page_ends_the_run() -> None:
    with pytest.raises(PoisonedContextError):
        list(engine(poisoned(InkDetector()), SureReader()).read_pages([low_page("B")]))
