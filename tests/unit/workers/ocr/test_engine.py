import threading
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import InkDetector, InkReader, gray_of, ink_bundle
from tests.support.ink_engines import (
    SilentReader,
    engine,
    page_of,
    read_one,
    text_of,
    without_seconds,
    work_thread_count,
)
from workers.ocr.crop_cache import CacheCounts
from workers.ocr.errors import InferenceError
from workers.ocr.inference import Session
from workers.ocr.page_image import PageImage
from workers.ocr.result import PageResult


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


def test_a_region_in_which_nothing_is_read_is_counted_but_is_no_line() -> None:
    result = read_one(engine(reader=SilentReader()), page_of("A"))

    assert isinstance(result, PageResult)
    assert result.lines == ()
    assert (result.crops_found, result.crops_kept) == (1, 1)
    assert result.mean_confidence is None


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


def test_the_limit_on_lines_is_kept_and_told() -> None:
    result = read_one(engine(max_crops=2), page_of("A", "B", "C", "D"))

    assert isinstance(result, PageResult)
    assert (result.crops_found, result.crops_kept, len(result.lines)) == (4, 2, 2)
    assert result.is_truncated


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
