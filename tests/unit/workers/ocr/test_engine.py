import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import (
    CHARSET,
    FailingSession,
    InkDetector,
    InkReader,
    gray_of,
    ink_bundle,
)
from workers.ocr.crop_cache import CacheCounts
from workers.ocr.engine import EngineOptions, OcrEngine
from workers.ocr.errors import InferenceError, OutOfMemoryError, PoisonedContextError
from workers.ocr.inference import Session
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.page_text import page_text
from workers.ocr.result import PageResult, page_json


def page_of(*letters: str, page_index: int = 0) -> PageImage:
    """A page with a wide bar a letter, from the top, which reads as that letter."""
    pixels = np.full((80 * len(letters) + 80, 400, 3), 255, dtype=np.uint8)
    for row, letter in enumerate(letters):
        pixels[80 * row + 60 : 80 * row + 90, 50:350] = gray_of(letter)
    return PageImage(page_index, pixels, dpi=200.0, rotation_deg=90, render_s=0.25)


def engine(
    detector: Session | None = None, reader: Session | None = None, **options: object
) -> OcrEngine:
    return OcrEngine(
        ink_bundle(),
        EngineOptions(**options),  # type: ignore[arg-type]  each test names its own
        sessions=(detector or InkDetector(), reader or InkReader()),
    )


def read_one(ocr: OcrEngine, page: PageImage) -> PageResult | PageFailure:
    (outcome,) = ocr.read_pages([page])
    return outcome


def text_of(outcome: PageResult | PageFailure) -> str:
    return page_text(page_json(outcome))


def without_seconds(outcome: PageResult | PageFailure) -> str:
    return json.dumps({**page_json(outcome), "seconds": None, "page_number": None})


def work_thread_count() -> int:
    return sum(thread.name.startswith("ocr-") for thread in threading.enumerate())


class MeetingReader(InkReader):
    """Answers only when several threads ask at once."""

    def __init__(self, *, party_count: int) -> None:
        super().__init__()
        self._meeting = threading.Barrier(party_count, timeout=10)

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        self._meeting.wait()
        return super().run(pixels, widths_px)


class ThreadRecorder:
    """Remembers which threads ran a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.threads: set[int] = set()

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        self.threads.add(threading.get_ident())
        return self._session.run(pixels, widths_px)


def test_a_page_is_read_from_the_top() -> None:
    result = read_one(engine(), page_of("A", "B", "C"))

    assert isinstance(result, PageResult)
    assert [line.text[len(line.text) // 2] for line in result.lines] == ["A", "B", "C"]
    assert (result.crops_found, result.crops_kept) == (3, 3)
    assert (result.width_px, result.height_px, result.rotation_deg) == (400, 320, 90)
    assert result.seconds.render == 0.25
    assert result.seconds.detect > 0
    assert result.seconds.recognize > 0


def test_coordinates_are_the_pages_own() -> None:
    result = read_one(engine(), page_of("A"))

    assert isinstance(result, PageResult)
    box = result.lines[0].quad.box
    assert (box.x_min + box.x_max) / 2 == pytest.approx(200, abs=2)
    assert (box.y_min + box.y_max) / 2 == pytest.approx(75, abs=2)
    word = result.lines[0].words[0].box
    assert word.x_min == pytest.approx(50, abs=4)
    assert word.x_max == pytest.approx(350, abs=4)


def test_a_blank_page_has_a_result_without_lines() -> None:
    blank = PageImage(0, np.full((200, 200, 3), 255, dtype=np.uint8), dpi=200.0)

    result = read_one(engine(), blank)

    assert isinstance(result, PageResult)
    assert result.lines == result.blocks == ()
    assert result.crops_found == 0


class SilentReader(InkReader):
    """Sees nothing but blanks."""

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        return super().run(np.full_like(pixels, 255), widths_px)


def test_a_region_in_which_nothing_is_read_is_counted_but_is_no_line() -> None:
    result = read_one(engine(reader=SilentReader()), page_of("A"))

    assert isinstance(result, PageResult)
    assert result.lines == ()
    assert (result.crops_found, result.crops_kept) == (1, 1)
    assert result.mean_confidence is None


def test_pages_come_back_in_order_and_failures_pass_through() -> None:
    failure = PageFailure(1, "damaged", "…")
    pages = [page_of("A"), failure, page_of("B", page_index=2), page_of("C", page_index=3)]

    outcomes = list(engine().read_pages(pages))

    assert [outcome.page_index for outcome in outcomes] == [0, 1, 2, 3]
    assert outcomes[1] is failure


def test_no_pages_give_no_results() -> None:
    assert list(engine().read_pages([])) == []


@pytest.mark.parametrize("chunk_size", [1, 2, 256])
def test_windows_and_chunk_sizes_change_no_text(chunk_size: int) -> None:
    pages = [page_of(*("ABC" if i % 2 else "DE"), page_index=i) for i in range(20)]

    outcomes = list(engine(device="cuda", rec_chunk_size=chunk_size).read_pages(pages))

    assert [text_of(outcome) for outcome in outcomes] == [
        text_of(read_one(engine(device="cuda"), page)) for page in pages
    ]


def test_lines_of_several_pages_are_read_together_on_a_gpu() -> None:
    reader = InkReader()
    pages = [page_of("A", "B", page_index=i) for i in range(4)]

    list(engine(reader=reader, device="cuda").read_pages(pages))

    assert [shape[0] for shape in reader.shapes] == [8]


@pytest.mark.parametrize(("device", "threads", "limit"), [("cuda", 1, 32), ("cpu", 3, 5)])
def test_pages_are_drawn_only_as_far_as_they_are_taken(
    device: str, threads: int, limit: int
) -> None:
    drawn = []

    def pages() -> Iterator[PageImage]:
        for i in range(100):
            drawn.append(i)
            yield page_of("A", page_index=i)

    outcomes = engine(device=device, threads=threads).read_pages(pages())
    most_ahead = max(len(drawn) - taken for taken, _ in enumerate(outcomes))

    assert 0 < most_ahead <= limit


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_no_result(threads: int) -> None:
    pages = [page_of(*"ABCDE"[: i % 6], page_index=i) for i in range(12)]

    outcomes = list(engine(threads=threads).read_pages(pages))

    assert [without_seconds(outcome) for outcome in outcomes] == [
        without_seconds(read_one(engine(), page)) for page in pages
    ]


def test_cores_are_used_at_once() -> None:
    reader = MeetingReader(party_count=3)

    (result,) = engine(reader=reader, threads=3).read_pages([page_of("A", "B", "C")])

    assert isinstance(result, PageResult)
    assert len(result.lines) == 3


def test_one_thread_owns_a_gpus_session() -> None:
    reader, detector = ThreadRecorder(InkReader()), ThreadRecorder(InkDetector())
    pages = [page_of("A", "B", page_index=i) for i in range(40)]

    list(engine(detector, reader, device="cuda", threads=4).read_pages(pages))

    assert len(reader.threads) == len(detector.threads) == 1
    assert reader.threads != detector.threads


def test_closing_stops_the_threads() -> None:
    before = work_thread_count()
    outcomes = engine(threads=3).read_pages(page_of("A", page_index=i) for i in range(50))
    next(outcomes)
    while_reading = work_thread_count()

    outcomes.close()  # type: ignore[attr-defined]  a generator

    assert while_reading == before + 3
    assert work_thread_count() == before


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


def test_the_limit_on_lines_is_kept_and_told() -> None:
    result = read_one(engine(max_crops=2), page_of("A", "B", "C", "D"))

    assert isinstance(result, PageResult)
    assert (result.crops_found, result.crops_kept, len(result.lines)) == (4, 2, 2)
    assert result.is_truncated


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


def has_letter_b(pixels: NDArray[np.uint8]) -> bool:
    gray = pixels[:, 24, 100].astype(int)
    return bool((np.abs(gray - gray_of("B")) < 2).any())


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


def poisoned(session: Session) -> FailingSession:
    return FailingSession(session, lambda _: True, lambda: PoisonedContextError("gone"))


def test_a_poisoned_context_in_detection_ends_the_run() -> None:
    with pytest.raises(PoisonedContextError):
        list(engine(detector=poisoned(InkDetector())).read_pages(PAGES))


def test_a_poisoned_context_in_recognition_ends_the_run() -> None:
    with pytest.raises(PoisonedContextError):
        list(engine(reader=poisoned(InkReader())).read_pages(PAGES))


class SidewaysReader(InkReader):
    """Is surer of the wider of two crops, and reads it as two letters or as one."""

    def __init__(self, *, letter_count: int) -> None:
        super().__init__()
        self._letter_count = letter_count

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        output = super().run(pixels, widths_px) * np.float32(1.0 if pixels.shape[2] > 64 else 0.5)
        if pixels.shape[2] > 64 and self._letter_count == 2:
            output[:, output.shape[1] // 2] = np.eye(output.shape[2], dtype=np.float32)[0]
        return output


@pytest.mark.parametrize(("letter_count", "angle_deg"), [(2, 90), (1, 0)])
def test_a_tall_shape_is_a_line_when_two_letters_are_read_in_it(
    letter_count: int, angle_deg: float
) -> None:
    pixels = np.full((300, 300, 3), 255, dtype=np.uint8)
    pixels[100:190, 100:130] = gray_of("A")
    page = PageImage(0, pixels, dpi=200.0)

    result = read_one(engine(reader=SidewaysReader(letter_count=letter_count)), page)

    assert isinstance(result, PageResult)
    assert result.crops_kept == len(result.lines) == 1
    assert result.lines[0].quad.angle_deg == pytest.approx(angle_deg, abs=1)


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


class ShrinkingReader(InkReader):
    """Counts how often it is asked to give memory back, and cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.shrink_count = 0

    def shrink(self) -> None:
        self.shrink_count += 1
        raise InferenceError("no")


@pytest.mark.parametrize(("device", "expected"), [("cpu", 3), ("cuda", 0)])
def test_memory_is_given_back_now_and_then_on_a_cpu(device: str, expected: int) -> None:
    reader = ShrinkingReader()
    ocr = engine(reader=reader, device=device)

    outcomes = [
        outcome
        for first in range(0, 200, 10)
        for outcome in ocr.read_pages([page_of("A", page_index=first + i) for i in range(10)])
    ]

    assert all(isinstance(outcome, PageResult) for outcome in outcomes)
    assert reader.shrink_count == expected


def test_warming_up_runs_both_models() -> None:
    detector, reader = InkDetector(), InkReader()

    engine(detector=detector, reader=reader).warm_up()

    assert detector.shapes
    assert reader.shapes


def test_on_cuda_pages_bring_no_shape_that_was_not_warmed_up() -> None:
    detector, reader = InkDetector(), InkReader()
    ocr = engine(detector=detector, reader=reader, device="cuda", rec_chunk_size=8)
    ocr.warm_up()
    warm = set(detector.shapes) | set(reader.shapes)
    detector.shapes.clear()
    reader.shapes.clear()

    list(ocr.read_pages([page_of(*"ABCDE"[: 1 + i % 5], page_index=i) for i in range(20)]))

    assert detector.shapes
    assert reader.shapes
    assert {*detector.shapes, *reader.shapes} <= warm


def test_on_a_cpu_one_shape_of_each_model_is_warmed_up() -> None:
    detector, reader = InkDetector(), InkReader()

    engine(detector=detector, reader=reader).warm_up()

    assert (len(detector.shapes), len(reader.shapes)) == (1, 1)


def test_a_page_that_comes_again_is_known_and_reads_the_same() -> None:
    reader = InkReader()
    ocr = engine(reader=reader)

    first, again = ocr.read_pages([page_of("A", "B")]), ocr.read_pages([page_of("A", "B")])

    assert [without_seconds(page) for page in first] == [without_seconds(page) for page in again]
    assert len(reader.shapes) == 2
    assert ocr.crop_cache_counts == CacheCounts(hits=2, misses=2)


def test_the_engine_names_its_models() -> None:
    assert engine().model_version == ink_bundle().model_version
