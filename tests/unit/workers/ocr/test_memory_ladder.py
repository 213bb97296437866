from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.fake_sessions import InkReader
from workers.ocr.errors import (
    InferenceError,
    OutOfMemoryError,
    PoisonedContextError,
    SessionLostError,
)
from workers.ocr.memory_ladder import LadderSession

ONE = np.zeros((1, 48, 64, 3), dtype=np.uint8)
TWO = np.zeros((2, 48, 64, 3), dtype=np.uint8)


class Arena:
    """Memory that sessions share: runs fail until enough steps of the ladder were taken."""

    def __init__(self, steps_needed: int, error: type[InferenceError] = OutOfMemoryError) -> None:
        self.steps: list[str] = []
        self._steps_needed = steps_needed
        self._error = error

    def open(self) -> "ArenaSession":
        self.steps.append("open")
        return ArenaSession(self)

    def take(self) -> None:
        if len(self.steps) <= self._steps_needed:
            raise self._error("full")


class ArenaSession:
    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._reader = InkReader()

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        self._arena.take()
        return self._reader.run(pixels, widths_px)

    def shrink(self) -> None:
        self._arena.steps.append("shrink")


@pytest.mark.parametrize(
    ("steps_needed", "steps"),
    [(0, ["open"]), (1, ["open", "shrink"]), (2, ["open", "shrink", "open"])],
)
def test_one_step_after_the_other_is_tried(steps_needed: int, steps: list[str]) -> None:
    arena = Arena(steps_needed)

    output = LadderSession(arena.open).run(ONE)

    assert np.array_equal(output, InkReader().run(ONE))
    assert arena.steps == steps


def test_an_input_that_fits_nowhere_is_out_of_memory_and_the_session_lives() -> None:
    arena = Arena(3)
    session = LadderSession(arena.open)

    with pytest.raises(OutOfMemoryError):
        session.run(ONE)

    assert session.run(ONE).shape[0] == 1
    assert arena.steps == ["open", "shrink", "open", "shrink"]


def test_a_larger_minibatch_is_left_to_be_halved() -> None:
    arena = Arena(9)

    with pytest.raises(OutOfMemoryError):
        LadderSession(arena.open).run(TWO)

    assert arena.steps == ["open"]


def test_a_poisoned_context_is_not_climbed_from() -> None:
    arena = Arena(9, PoisonedContextError)

    with pytest.raises(PoisonedContextError):
        LadderSession(arena.open).run(ONE)

    assert arena.steps == ["open"]


def fail_the_second_time(arena: Arena) -> Callable[[], ArenaSession]:
    def open_session() -> ArenaSession:
        if arena.steps:
            raise OutOfMemoryError("not even the weights fit")
        return arena.open()

    return open_session


def test_a_session_that_cannot_be_loaded_again_ends_the_process() -> None:
    session = LadderSession(fail_the_second_time(Arena(9)))

    with pytest.raises(SessionLostError):
        session.run(ONE)
    with pytest.raises(SessionLostError):
        session.run(ONE)


def test_a_lost_session_is_decided_like_a_poisoned_context() -> None:
    assert issubclass(SessionLostError, PoisonedContextError)


@pytest.mark.parametrize(
    ("pixels", "steps_needed", "told"), [(ONE, 0, 0), (ONE, 1, 1), (ONE, 2, 1), (TWO, 9, 0)]
)
def test_a_single_input_that_found_no_memory_is_told_once(
    pixels: NDArray[np.uint8], steps_needed: int, told: int
) -> None:
    # Larger minibatches are told of by whoever halves them.
    calls: list[int] = []
    session = LadderSession(Arena(steps_needed).open, on_out_of_memory=lambda: calls.append(1))

    with suppress(OutOfMemoryError):
        session.run(pixels)

    assert len(calls) == told
