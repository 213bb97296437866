"""Read storage events from a queue, and let go of each only when it is done with.

A message is deleted after the COMMIT of what it led to. Whatever ends this process before leaves
the message to whoever receives it next, and the ledger of objects finds it known.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from api.errors import ApiError
from api.intake_metrics import count_event
from api.s3_events.event import UnreadableEventError
from api.s3_events.parse import parse
from api.take_in_object import TakeIn
from db.errors import DatabaseError, DatabaseUnavailableError
from storage.errors import StorageError, StorageUnavailableError
from storage.sqs import QueuedMessage

PAUSE_S = 5.0
MOST_AT_ONCE = 10  # of a queue, in one request

log = structlog.get_logger(__name__)


class EventQueue(Protocol):
    """Where messages wait; see ``storage.sqs``."""

    def receive(self, *, at_most: int) -> Sequence[QueuedMessage]:
        """Return some messages, or none after a wait."""

    def delete(self, messages: Sequence[QueuedMessage]) -> None:
        """Take messages away for good."""

    def give_back(self, messages: Sequence[QueuedMessage], *, delay_s: int) -> None:
        """Let messages be received again after a delay."""


class NotNowError(Exception):
    """Nothing can be done with any message at the moment; all are good, and wait."""


def consume_until(
    stop: threading.Event,
    *,
    queue: EventQueue,
    take_in: TakeIn,
    require_ready: Callable[[], None],
    handling_limit_s: float,
    after_round: Callable[[], None],
    pause_s: float = PAUSE_S,
) -> None:
    """Receive and handle messages, round after round, until ``stop`` is set.

    Args:
        stop: ends it; what was received and not begun is given back at once.
        queue: where the messages wait.
        take_in: handles one event.
        require_ready: is asked before each request, and raises while the database or the storage
            is away, or the system full. What is received then would be given back, and a queue
            counts how often: after five times a message is set aside as if it were at fault.
        handling_limit_s: for the messages of one request; those that are left are given back.
        after_round: is called after each round.
        pause_s: after a round in which nothing could be done.
    """
    at_most = MOST_AT_ONCE
    while not stop.is_set():
        try:
            require_ready()
            in_time = _consume_once(stop, queue, take_in, handling_limit_s, at_most=at_most)
            # What comes back unread is counted against it, so no more is asked for than is done.
            at_most = min(at_most + 1, MOST_AT_ONCE) if in_time is None else max(in_time, 1)
        except ApiError as error:
            log.info("events left in the queue", reason=error.code)
            stop.wait(pause_s)
        except (NotNowError, DatabaseUnavailableError, StorageUnavailableError) as error:
            log.warning("events left in the queue", reason=str(error))
            stop.wait(pause_s)
        except StorageError as error:
            log.error("the queue refuses", reason=str(error))  # noqa: TRY400 - the answer says it all
            stop.wait(pause_s)
        after_round()


def _consume_once(
    stop: threading.Event,
    queue: EventQueue,
    take_in: TakeIn,
    handling_limit_s: float,
    *,
    at_most: int,
) -> int | None:
    """Receive and handle some messages; return how many the time was enough for, None: for all.

    Raises:
        NotNowError: no message can be handled at the moment; those that are left were given back.
        StorageError: the queue refuses.
    """
    received = list(queue.receive(at_most=at_most))
    left = list(received)
    done: list[QueuedMessage] = []
    deadline = time.monotonic() + handling_limit_s
    is_hopeless = False
    try:
        while left and not stop.is_set() and time.monotonic() < deadline:
            if _is_done(left[0], take_in):
                done.append(left[0])
            left.pop(0)
    except (ApiError, DatabaseUnavailableError, StorageUnavailableError) as error:
        is_hopeless = True
        raise NotNowError(str(error)) from error
    finally:
        queue.delete(done)
        queue.give_back(left, delay_s=int(PAUSE_S) if is_hopeless else 0)
    return len(received) - len(left) if left else None


def _is_done(message: QueuedMessage, take_in: TakeIn) -> bool:
    """Handle one message; False: it stays hidden for its time, comes again, and is set aside then.

    Raises:
        ApiError: the system is full; no other message can be handled either.
        DatabaseUnavailableError: likewise, the database is away.
        StorageUnavailableError: likewise, the storage is.
    """
    try:
        for event in parse(message.body):
            outcome = take_in(event)
            log.info("event handled", outcome=outcome, bucket=event.bucket)
    except UnreadableEventError as error:
        count_event("unreadable")
        log.error("message is unreadable", reason=str(error), deliveries=message.deliveries)  # noqa: TRY400 - nothing of ours failed
        return False
    except (DatabaseUnavailableError, StorageUnavailableError):
        raise
    except ApiError as error:
        if error.code == "system_full":
            raise
        log.error("event refused", code=error.code, deliveries=message.deliveries)  # noqa: TRY400 - the settings are at fault
        return False
    except (DatabaseError, StorageError):
        log.exception("event not handled", deliveries=message.deliveries)
        return False
    return True
