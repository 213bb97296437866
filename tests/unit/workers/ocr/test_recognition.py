from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.fake_sessions import (
    CHARSET,
    FailingSession,
    FixedSession,
    InkReader,
    barcode,
)
from workers.ocr.bundle import read_manifest
from workers.ocr.errors import (
    InferenceError,
    ModelFileError,
    OutOfMemoryError,
    PoisonedContextError,
)
from workers.ocr.inference import Session
from workers.ocr.recognition import RecognizedLine, Recognizer
from workers.ocr.recognition_limits import RecognitionLimits
from workers.ocr.width_buckets import CUDA_BUCKETS_PX

MODEL = read_manifest().recognition
words = st.lists(st.text(alphabet="ABC-", min_size=1, max_size=60), min_size=1, max_size=12)


def recognizer(
    session: Session,
    *,
    rec_chunk_size: int = 256,
    columns: int = 262_144,
    has_few_counts: bool = False,
) -> Recognizer:
    limits = RecognitionLimits(rec_chunk_size, columns, CUDA_BUCKETS_PX, has_few_counts)
    return Recognizer(session, MODEL, CHARSET, limits)


def texts(outcomes: Sequence[RecognizedLine | InferenceError]) -> list[str]:
    return [outcome.text for outcome in outcomes]


def test_crops_of_many_widths_come_back_in_their_order() -> None:
    lines = ["A", "BC" * 30, "D-D", "", "CAB" * 40, "B"]
    crops = [barcode(line) if line else barcode("-") for line in lines]

    outcomes = recognizer(InkReader()).recognize(crops)

    assert texts(outcomes) == [line.replace("-", "") for line in lines]


def test_no_crops_give_no_lines() -> None:
    assert recognizer(InkReader()).recognize([]) == []


def test_an_empty_line_has_no_confidence() -> None:
    (line,) = recognizer(InkReader()).recognize([barcode("---")])

    assert (line.text, line.confidence) == ("", 0.0)


def test_confidence_is_the_mean_of_the_kept_steps() -> None:
    (line,) = recognizer(InkReader()).recognize([barcode("A-B")])

    assert line.confidence == pytest.approx(0.75)


def test_characters_know_their_columns() -> None:
    (line,) = recognizer(InkReader()).recognize([barcode("A-B", step_count=2)])

    assert [(c.text, c.start_px, c.stop_px) for c in line.characters] == [
        ("A", 0, 16),
        ("B", 32, 48),
    ]


def test_minibatches_keep_to_the_limits_and_to_one_width() -> None:
    session = InkReader()
    crops = [barcode("AB") for _ in range(7)] + [barcode("ABC" * 50) for _ in range(3)]

    recognizer(session, rec_chunk_size=3, columns=2 * 1280).recognize(crops)

    assert [(shape[0], shape[2]) for shape in session.shapes] == [
        (2, 1280), (1, 1280), (3, 320), (3, 320), (1, 320),
    ]  # fmt: skip


def test_few_counts_fill_minibatches_up_with_inputs_without_a_pixel() -> None:
    seen = []

    class Recorder(InkReader):
        def run(
            self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
        ) -> NDArray[np.float32]:
            assert widths_px is not None
            seen.append(widths_px.tolist())
            return super().run(pixels, widths_px)

    crops = [barcode("A" * count) for count in (1, 2, 3, 4, 5)]
    outcomes = recognizer(Recorder(), has_few_counts=True).recognize(crops)

    assert seen == [[8, 16, 24, 32, 40, 0, 0, 0]]
    assert len(outcomes) == len(crops)


@given(
    lines=words,
    chunk=st.integers(1, 256),
    columns=st.integers(1, 20_000),
    capacity=st.integers(1, 300),
)
def test_work_brings_no_shape_that_was_not_warmed_up_where_there_are_few(
    lines: list[str], chunk: int, columns: int, capacity: int
) -> None:
    warm, used = InkReader(), InkReader()
    limits = {"rec_chunk_size": chunk, "columns": columns}
    small = FailingSession(used, lambda b: len(b) > capacity, lambda: OutOfMemoryError("full"))

    recognizer(warm, **limits, has_few_counts=True).warm_up()
    recognizer(small, **limits, has_few_counts=True).recognize([barcode(line) for line in lines])

    assert set(used.shapes) <= set(warm.shapes)
    assert all(shape[0] <= chunk for shape in warm.shapes)
    assert len(warm.shapes) <= 9 * len(CUDA_BUCKETS_PX)


def test_a_model_with_the_steps_of_its_manifest_passes() -> None:
    recognizer(InkReader()).check_step()


@pytest.mark.parametrize(("steps", "step_px"), [(80, 4), (41, 8), (20, 16)])
def test_a_model_with_other_steps_than_its_manifest_tells_is_refused(
    steps: int, step_px: int
) -> None:
    session = FixedSession(np.zeros((1, steps, len(CHARSET) + 1), dtype=np.float32))

    with pytest.raises(ModelFileError, match=f"{steps} steps, so it should be {step_px}"):
        recognizer(session).check_step()


def test_a_model_is_told_which_columns_are_pixels() -> None:
    seen = []

    class Recorder(InkReader):
        def run(
            self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
        ) -> NDArray[np.float32]:
            assert widths_px is not None
            seen.append((pixels, widths_px.tolist()))
            return super().run(pixels, widths_px)

    crops = [barcode("A"), barcode("ABCD")]
    recognizer(Recorder()).recognize(crops)

    ((pixels, widths_px),) = seen
    assert widths_px == [crop.shape[1] for crop in crops]
    for image, crop in zip(pixels, crops, strict=True):
        assert np.array_equal(image[:, : crop.shape[1]], crop)


@given(lines=words, chunk=st.integers(1, 256), has_few_counts=st.booleans(), data=st.data())
def test_a_text_depends_on_neither_chunk_size_nor_neighbors(
    lines: list[str], chunk: int, data: st.DataObject, *, has_few_counts: bool
) -> None:
    crops = [barcode(line) for line in lines]
    order = data.draw(st.permutations(range(len(lines))))
    cut = recognizer(InkReader(), rec_chunk_size=chunk, has_few_counts=has_few_counts)

    together = cut.recognize([crops[i] for i in order])

    alone = [recognizer(InkReader()).recognize([crop])[0] for crop in crops]
    assert together == [alone[i] for i in order]


@given(lines=words, capacity=st.integers(1, 6), has_few_counts=st.booleans())
def test_a_text_is_the_same_after_running_out_of_memory(
    lines: list[str], capacity: int, *, has_few_counts: bool
) -> None:
    crops = [barcode(line) for line in lines]
    small = FailingSession(
        InkReader(), lambda batch: len(batch) > capacity, lambda: OutOfMemoryError("full")
    )

    outcomes = recognizer(small, has_few_counts=has_few_counts).recognize(crops)

    assert outcomes == recognizer(InkReader()).recognize(crops)


def test_a_retry_halves_at_the_same_width() -> None:
    session = InkReader()
    tight = FailingSession(session, lambda b: len(b) > 2, lambda: OutOfMemoryError("full"))

    recognizer(tight).recognize([barcode("AB")] * 7)

    assert {shape[2] for shape in session.shapes} == {320}
    assert sum(shape[0] for shape in session.shapes) == 7
    assert max(shape[0] for shape in session.shapes) <= 2


@pytest.mark.parametrize("error", [OutOfMemoryError, InferenceError])
def test_a_crop_that_cannot_be_read_fails_alone(error: type[InferenceError]) -> None:
    broken = barcode("J")
    session = FailingSession(
        InkReader(),
        lambda pixels: bool((pixels[:, 0, 0, 0] == broken[0, 0, 0]).any()),
        lambda: error("no"),
    )

    outcomes = recognizer(session).recognize([barcode("A"), broken, barcode("B")])

    assert isinstance(outcomes[1], error)
    assert texts([outcomes[0], outcomes[2]]) == ["A", "B"]


def test_a_poisoned_context_ends_everything() -> None:
    session = FailingSession(InkReader(), lambda _: True, lambda: PoisonedContextError("gone"))

    with pytest.raises(PoisonedContextError):
        recognizer(session).recognize([barcode("A"), barcode("B")])


def test_a_line_wider_than_the_largest_bucket_is_read_whole() -> None:
    text = ("ABCDEFGHIJ" * 20 + "-" * 3) * 4
    crop = barcode(text)

    (line,) = recognizer(InkReader()).recognize([crop])

    assert crop.shape[1] > 2 * CUDA_BUCKETS_PX[-1]
    assert line.text.replace(" ", "") == text.replace("-", "")
    assert line.characters[-1].stop_px == crop.shape[1] - 3 * 8


def test_a_long_line_with_an_unreadable_piece_fails() -> None:
    session = FailingSession(InkReader(), lambda b: b.shape[2] < 3200, lambda: OutOfMemoryError(""))

    (outcome,) = recognizer(session).recognize([barcode("AB" * 250)])

    assert isinstance(outcome, OutOfMemoryError)


@pytest.mark.parametrize("shape", [(1, 40), (1, 40, 5), (2, 40, len(CHARSET) + 1)])
def test_an_answer_of_the_wrong_shape_is_an_error(shape: tuple[int, ...]) -> None:
    session = FixedSession(np.zeros(shape, dtype=np.float32))

    (outcome,) = recognizer(session).recognize([barcode("A")])

    assert isinstance(outcome, InferenceError)
    assert not isinstance(outcome, RecognizedLine)


def test_warming_up_runs_the_smallest_bucket() -> None:
    session = InkReader()

    recognizer(session).warm_up()

    assert session.shapes == [(1, 48, 320, 3)]
