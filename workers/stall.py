"""Tells a worker that takes nothing from a queue that has work from one that has nothing to do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glance:
    """What is seen of a worker at one time.

    Attributes:
        taken: tasks that it has taken since its start.
        held: tasks that it has at this time, those that wait for their slot included.
        slots: tasks that it can have.
        waiting: messages in its queues; None when nobody knows, as while the broker is away.
    """

    taken: int
    held: int
    slots: int
    waiting: int | None


class StallWatch:
    """Counts for how long a worker has had room, and work waiting, and has taken nothing.

    Whatever explains that starts the count anew: a task taken, all slots held (by a long task, or
    while a slot loads its models), an empty queue, or one that nobody can look at.
    """

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._taken = 0

    def stalled_s(self, glance: Glance, *, now_s: float) -> float:
        """Return for how many seconds this has gone on; 0 when all is well.

        Args:
            glance: what is seen now.
            now_s: seconds of a clock that only grows.
        """
        is_idle = glance.held < glance.slots and glance.taken == self._taken
        self._taken = glance.taken
        if not (is_idle and glance.waiting):
            self._since_s = None
            return 0
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s
