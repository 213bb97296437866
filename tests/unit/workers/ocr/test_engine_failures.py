"""What an engine does with a page that it cannot read: that page fails, and the others are read."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import FailingSession, InkDetector, InkReader
from tests.support.ink_engines import engine, has_letter_b, page_of, poisoned, work_thread_count
from workers.ocr.errors import InferenceError, OutOfMemoryError, PoisonedContextError
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.result import PageResult


def test_pages_come_back_in_order_and_failures_pass_through() -> None:
    failure = PageFailure(1, "damaged", "…")
    pages = [page_of("A"), failure, page_of("B", page_index=2), page_of("C", page_index=3)]

    outcomes = list(engine().read_pages(pages))

    assert [outcome.page_index for outcome in outcomes] == [0, 1, 2, 3]
    assert outcomes[1] is failure


def test_an_error_of_the_page_source_passes_through() -> None:
    before = work_thread_count()

    def pages() -> Iterator[PageImage]:
        yield page_of("A")
        raise EOFError("no more pages")

    with pytest.raises(EOFError, match="no more pages"):
        list(engine(threads=2).read_pages(pages()))

    assert work_thread_count() == before


def test_many_failures_between_pages_hold_nothing_up() -> None:
    failures = [PageFailure(i, "damaged", "…") for i in range(1, 60)]

    outcomes = list(engine(device="cuda").read_pages([page_of("A"), *failures]))

    assert outcomes[1:] == failures


def is_second_page(pixels: NDArray[np.uint8]) -> bool:
    return pixels.shape[1] == 480  # the page with five lines


PAGES = [
    page_of("A"),
    page_of("B", "B", "B", "B", "B", page_index=1),
    page_of("C", page_index=2),
]


def test_a_page_whose_detection_fails_is_that_pages_failure() -> None:
    detector = FailingSession(InkDetector(), is_second_page, lambda: OutOfMemoryError("full"))

    first, second, third = engine(detector=detector).read_pages(PAGES)

    assert isinstance(second, PageFailure)
    assert (second.page_index, second.code) == (1, "gpu_out_of_memory")
    assert isinstance(first, PageResult)
    assert isinstance(third, PageResult)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("error", "code"), [(OutOfMemoryError, "gpu_out_of_memory"), (InferenceError, "internal")]
)
def test_a_page_whose_recognition_fails_is_that_pages_failure(
    error: type[InferenceError], code: str, device: str
) -> None:
    reader = FailingSession(InkReader(), has_letter_b, lambda: error("detail"))

    first, second, third = engine(reader=reader, device=device).read_pages(PAGES)

    assert isinstance(second, PageFailure)
    assert (second.page_index, second.code) == (1, code)
    assert "detail" not in second.message
    assert isinstance(first, PageResult)
    assert isinstance(third, PageResult)


def test_a_poisoned_context_in_detection_ends_the_run() -> None:
    with pytest.raises(PoisonedContextError):
        list(engine(detector=poisoned(InkDetector())).read_pages(PAGES))


def test_a_poisoned_context_in_recognition_ends_the_run() -> None:
    with pytest.raises(PoisonedContextError):
        list(engine(reader=poisoned(InkReader())).read_pages(PAGES))
