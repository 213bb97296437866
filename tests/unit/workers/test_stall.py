import pytest

from workers.stall import Glance, StallWatch

IDLE = Glance(taken=3, held=0, slots=2, waiting=1)


def watching(*glances: Glance) -> float:
    """Return for how long a worker has stalled after these glances, ten seconds apart."""
    watch = StallWatch()
    stalled_s = 0.0
    for index, glance in enumerate([IDLE, *glances]):
        stalled_s = watch.stalled_s(glance, now_s=index * 10)
    return stalled_s


def test_a_worker_that_takes_nothing_with_room_and_work_stalls() -> None:
    assert watching(IDLE, IDLE, IDLE) == 20


def test_room_beside_a_long_task_is_room() -> None:
    assert watching(*[Glance(taken=3, held=1, slots=2, waiting=1)] * 3) == 20


@pytest.mark.parametrize(
    "glance",
    [
        pytest.param(Glance(taken=4, held=0, slots=2, waiting=1), id="it took something"),
        pytest.param(Glance(taken=3, held=2, slots=2, waiting=1), id="all its slots are held"),
        pytest.param(Glance(taken=3, held=0, slots=2, waiting=0), id="there is no work"),
        pytest.param(Glance(taken=3, held=0, slots=2, waiting=None), id="nobody knows"),
    ],
)
def test_what_explains_it_begins_the_count_anew(glance: Glance) -> None:
    assert watching(IDLE, IDLE, glance) == 0
