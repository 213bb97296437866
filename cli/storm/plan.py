"""Which faults a storm has, and when: drawn from a seed before it begins."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

DROPPED_PUBLISHES: Final = "drop_publishes"


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Attributes:
        mean_s: between two of this kind, on average.
        gap_of: what needs time to recover in between; faults with the same word keep apart.
    """

    mean_s: float
    gap_of: str


# A child loads models for seconds before it works again: kills that come faster than that stop
# all work and prove nothing.
_GAPS_S: Final[Mapping[str, float]] = {
    "recognizer": 4.0,
    "splitter": 3.0,
    "api": 3.0,
    "reconciler": 2.0,
    "redis": 3.0,
    "postgres": 6.0,
    "s3": 5.0,
}

FAULTS: Final[Mapping[str, Fault]] = {
    "kill_recognizer_child": Fault(9, "recognizer"),
    "kill_recognizer_group": Fault(25, "recognizer"),
    "freeze_recognizer_child": Fault(25, "recognizer"),
    "kill_splitter_child": Fault(12, "splitter"),
    "kill_splitter_group": Fault(25, "splitter"),
    "kill_api": Fault(20, "api"),
    "kill_reconciler": Fault(15, "reconciler"),
    "kill_redis": Fault(30, "redis"),
    "flush_redis": Fault(30, "redis"),
    "disconnect_redis": Fault(15, "redis"),
    "restart_postgres": Fault(45, "postgres"),
    "crash_postgres": Fault(60, "postgres"),
    "s3_refuses": Fault(25, "s3"),
    "s3_slow": Fault(30, "s3"),
    "s3_cuts": Fault(25, "s3"),
}
KINDS: Final = (*FAULTS, DROPPED_PUBLISHES)
# So that the last fault still finds work to hit.
_LAST_SHARE: Final = 0.97


@dataclass(frozen=True, slots=True, order=True)
class PlannedFault:
    """A fault and its time, in seconds from the start of the storm.

    ``strength`` in [0, 1] is for what varies within the kind: which process, for how long.
    """

    at_s: float
    kind: str
    strength: float


def plan_faults(
    seed: int, duration_s: float, kinds: Iterable[str] = FAULTS, *, pace: float = 1
) -> list[PlannedFault]:
    """Return the faults of a storm in their order; the same seed gives the same ones.

    Each kind comes at random times with its own mean distance, and in a short storm once, unless
    others of its gap leave it no room. All distances are ``pace`` times as long.
    """
    drawn = []
    for kind in sorted(set(kinds) & set(FAULTS)):
        # Of its own for each kind, so that leaving one out does not move the others.
        choose = random.Random(f"{seed} {kind}")  # noqa: S311 - no secret
        mean_s = pace * FAULTS[kind].mean_s
        at_s = choose.uniform(0.05, 0.95) * min(mean_s, duration_s)
        while at_s < duration_s:
            drawn.append(PlannedFault(round(at_s, 2), kind, round(choose.random(), 4)))
            at_s += choose.uniform(0.5, 1.5) * mean_s
    return _apart(sorted(drawn), duration_s, pace)


def _apart(drawn: list[PlannedFault], duration_s: float, pace: float) -> list[PlannedFault]:
    """Move faults back that come before the one before is over; past the end they are left out."""
    free_at_s: dict[str, float] = {}
    planned = []
    for fault in drawn:
        gap_of = FAULTS[fault.kind].gap_of
        at_s = round(max(fault.at_s, free_at_s.get(gap_of, 0.0)), 2)
        if at_s <= _LAST_SHARE * duration_s:
            free_at_s[gap_of] = at_s + pace * _GAPS_S[gap_of]
            planned.append(PlannedFault(at_s, fault.kind, fault.strength))
    return sorted(planned)
