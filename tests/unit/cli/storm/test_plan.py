from collections import Counter
from itertools import pairwise

import pytest

from cli.storm.plan import FAULTS, KINDS, plan_faults


@pytest.mark.parametrize("seed", range(20))
def test_a_minute_has_every_kind_of_fault(seed: int) -> None:
    kinds = Counter(fault.kind for fault in plan_faults(seed, 60))

    assert kinds.keys() == FAULTS.keys()
    assert kinds["kill_recognizer_child"] > 1


def test_a_seed_gives_the_same_faults_in_order_and_another_gives_others() -> None:
    plan = plan_faults(1, 300)

    assert plan == plan_faults(1, 300) == sorted(plan)
    assert plan != plan_faults(2, 300)
    assert all(0 < fault.at_s < 300 and 0 <= fault.strength < 1 for fault in plan)


@pytest.mark.parametrize("seed", range(20))
def test_faults_leave_time_to_recover(seed: int) -> None:
    times_s = [
        fault.at_s for fault in plan_faults(seed, 300) if FAULTS[fault.kind].gap_of == "recognizer"
    ]

    assert min(later - earlier for earlier, later in pairwise(times_s)) >= 3.99


def test_only_the_chosen_kinds_happen() -> None:
    assert {fault.kind for fault in plan_faults(1, 60, ["kill_api"])} == {"kill_api"}
    assert plan_faults(1, 60, [kind for kind in KINDS if kind not in FAULTS]) == []


def test_a_slower_pace_has_fewer_faults() -> None:
    counts = [len(plan_faults(1, 600, pace=pace)) for pace in (1, 3)]

    assert counts[1] < counts[0] / 2
