"""The numbers that all use cases share: leases, attempts, delays."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkRules:
    """How work is held, tried again and handed on.

    Attributes:
        worker: who holds a claim, for people who look at a row.
        lease_s: how long a claim lasts without renewal.
        max_attempts: claims that count, after which a row is given up.
        retry_delay_s: how long a row that was put back rests.
        dispatch_grace_s: how long the sweep leaves a sent message alone.
        queue_limit: most messages that wait in a queue.
        overtime_s: the shortest time after which a process is ended for what it works on.
    """

    worker: str
    lease_s: float
    max_attempts: int
    retry_delay_s: float
    dispatch_grace_s: float
    queue_limit: int
    overtime_s: float = math.inf
