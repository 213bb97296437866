"""Messages to a broker that may be away: an upload does not wait for each attempt."""

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Protocol
from uuid import UUID

from db.states import Priority
from workers.dispatch import DispatchError

REST_S = 5.0


class SendSplit(Protocol):
    """Says that a document waits; ``DispatchError`` when nobody hears it."""

    def __call__(self, document_id: UUID, *, priority: Priority) -> None: ...


class SparedDispatch:
    """Sends messages, but after one that could not be sent none for ``rest_s`` seconds.

    What is not sent is left to the sweep, as if the broker had refused it.
    """

    def __init__(
        self,
        send_split: SendSplit,
        *,
        rest_s: float = REST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send_split = send_split
        self._rest_s = rest_s
        self._clock = clock
        self._lock = Lock()
        self._rests_until = -math.inf

    def __call__(self, document_id: UUID, *, priority: Priority) -> None:
        """Say that a document waits.

        Raises:
            DispatchError: the broker does not take it, or did not take another one just now.
        """
        with self._lock:
            is_resting = self._clock() < self._rests_until
        if is_resting:
            raise DispatchError("the message broker did not answer just now")
        try:
            self._send_split(document_id, priority=priority)
        except DispatchError:
            with self._lock:
                self._rests_until = self._clock() + self._rest_s
            raise
