"""Whose turn it is: tenants first, then the lanes of a tenant, one row a turn. No database here."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Lane(NamedTuple):
    """What waits in one line: a batch of a tenant, or all its documents without one ("")."""

    tenant: str
    name: str


class Turns:
    """Hands out turns, and goes on where it stopped.

    Without its memory, a queue with room for few would serve the same few tenants every time.
    One process remembers; another one, or the same after a restart, begins anywhere, which is
    as fair.
    """

    def __init__(self) -> None:
        self._last_tenant = ""
        self._last_lane: dict[str, str] = {}

    def plan(self, waiting: Mapping[Lane, int], room: int) -> list[Lane]:
        """Return the lanes in the order of their turns, each as often as it has turns.

        Args:
            waiting: how many rows wait in each lane.
            room: the most turns.
        """
        tenants = self._in_order(waiting)
        left = dict(waiting)
        turns: list[Lane] = []
        while tenants and len(turns) < room:
            lanes = tenants.popleft()
            lane = lanes.popleft()
            turns.append(lane)
            left[lane] -= 1
            if left[lane] > 0:
                lanes.append(lane)
            if lanes:
                tenants.append(lanes)
        return turns

    def remember(self, turns: Sequence[Lane], waiting: Mapping[Lane, int]) -> None:
        """Go on behind these turns next time; whoever waits no more is forgotten."""
        if turns:
            self._last_tenant = turns[-1].tenant
        tenants = {lane.tenant for lane in waiting}
        self._last_lane = {
            tenant: name for tenant, name in self._last_lane.items() if tenant in tenants
        }
        self._last_lane |= {lane.tenant: lane.name for lane in turns}

    def _in_order(self, waiting: Mapping[Lane, int]) -> deque[deque[Lane]]:
        by_tenant: dict[str, list[Lane]] = {}
        for lane in sorted(lane for lane, count in waiting.items() if count > 0):
            by_tenant.setdefault(lane.tenant, []).append(lane)
        tenants = sorted(by_tenant, key=lambda tenant: (tenant <= self._last_tenant, tenant))
        return deque(deque(self._rotated(by_tenant[tenant])) for tenant in tenants)

    def _rotated(self, lanes: Sequence[Lane]) -> list[Lane]:
        last = self._last_lane.get(lanes[0].tenant)
        if last is None:
            return list(lanes)
        return sorted(lanes, key=lambda lane: (lane.name <= last, lane.name))
