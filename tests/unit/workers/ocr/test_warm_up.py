import logging

import numpy as np
import pytest

from tests.support.fake_sessions import FailingSession, InkReader
from workers.ocr.errors import InferenceError, OutOfMemoryError
from workers.ocr.warm_up import run_shapes

SHAPES = [(1, 48, 320), (4, 48, 320), (1, 48, 640), (2, 48, 320)]


def test_every_shape_is_run_once_the_largest_first() -> None:
    session = InkReader()

    run_shapes(session, [*SHAPES, SHAPES[0]], model="recognition")

    sizes = [int(np.prod(shape)) for shape in session.shapes]
    assert sorted(session.shapes) == sorted((*shape, 3) for shape in SHAPES)
    assert sizes == sorted(sizes, reverse=True)


def test_a_shape_without_room_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    session = InkReader()
    small = FailingSession(session, lambda b: len(b) > 2, lambda: OutOfMemoryError("full"))

    with caplog.at_level(logging.INFO):
        run_shapes(small, SHAPES, model="recognition")

    (record,) = caplog.records
    told = vars(record)
    assert len(session.shapes) == 3
    assert (told["model"], told["shapes"], told["shapes_too_large"]) == ("recognition", 4, 1)
    assert told["seconds"] >= 0


def test_a_slow_device_is_ready_in_time_and_tells_what_it_left_cold(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = InkReader()

    with caplog.at_level(logging.INFO):
        run_shapes(session, SHAPES, model="recognition", longest_s=0)

    assert session.shapes == [(1, 48, 320, 3)]
    assert vars(caplog.records[0])["shapes_left"] == 3


def test_without_room_for_the_smallest_shape_there_is_no_work() -> None:
    full = FailingSession(InkReader(), lambda _: True, lambda: OutOfMemoryError("full"))

    with pytest.raises(OutOfMemoryError):
        run_shapes(full, SHAPES, model="recognition")


def test_another_failure_ends_the_warm_up() -> None:
    broken = FailingSession(InkReader(), lambda b: len(b) == 4, lambda: InferenceError("broken"))

    with pytest.raises(InferenceError, match="broken"):
        run_shapes(broken, SHAPES, model="recognition")
