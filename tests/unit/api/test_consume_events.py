"""What is taken off a queue, and what is left in it."""

import json
import threading
from collections.abc import Iterator, Sequence
from itertools import count
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from api import consume_events
from api.consume_events import consume_until
from api.errors import ApiError
from api.s3_events.event import ObjectEvent
from api.take_in_object import Outcome
from db.errors import DatabaseError, DatabaseUnavailableError
from storage.errors import SourceRefusedError, StorageError, StorageUnavailableError
from storage.sqs import QueuedMessage


@pytest.fixture(autouse=True)
def _captured_logs() -> Iterator[None]:
    with capture_logs():
        yield


def message(*keys: str) -> QueuedMessage:
    records = [
        {
            "eventName": "ObjectCreated:Put",
            "s3": {"bucket": {"name": "scans"}, "object": {"key": key}},
        }
        for key in keys
    ]
    return QueuedMessage("-".join(keys), json.dumps({"Records": records}), 1)


class Queue:
    """Hands out what a test has prepared, and remembers what came back; then it ends the loop."""

    def __init__(self, stop: threading.Event, *rounds: Sequence[QueuedMessage]) -> None:
        self._stop = stop
        self._rounds = list(rounds)
        self.asked = 0
        self.asked_for: list[int] = []
        self.deleted: list[str] = []
        self.given_back: list[str] = []

    def receive(self, *, at_most: int) -> Sequence[QueuedMessage]:
        self.asked += 1
        self.asked_for.append(at_most)
        if not self._rounds:
            self._stop.set()
            return []
        return self._rounds.pop(0)

    def delete(self, messages: Sequence[QueuedMessage]) -> None:
        self.deleted += [each.receipt for each in messages]

    def give_back(self, messages: Sequence[QueuedMessage], *, delay_s: int) -> None:
        del delay_s
        self.given_back += [each.receipt for each in messages]


class Taking:
    """Takes events in, but for those of keys that a test says; each error comes once."""

    def __init__(self, **errors: Exception) -> None:
        self._errors = errors
        self.taken: list[str] = []

    def __call__(self, event: ObjectEvent) -> Outcome:
        if event.key in self._errors:
            raise self._errors.pop(event.key)
        self.taken.append(event.key)
        return Outcome.ACCEPTED


def consume(
    stop: threading.Event,
    queue: Queue,
    taking: Taking,
    *,
    ready: Sequence[Exception | None] = (),
    limit_s: float = 20,
) -> None:
    answers = iter(ready)

    def require_ready() -> None:
        answer = next(answers, None)
        if answer is not None:
            raise answer

    consume_until(
        stop,
        queue=queue,
        take_in=taking,
        require_ready=require_ready,
        handling_limit_s=limit_s,
        after_round=lambda: None,
        pause_s=0,
    )


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def test_a_message_is_deleted_when_all_its_events_are_done_with(stop: threading.Event) -> None:
    queue, taking = Queue(stop, [message("a", "b"), message("c")]), Taking()

    consume(stop, queue, taking)

    assert (taking.taken, queue.deleted) == (["a", "b", "c"], ["a-b", "c"])


def test_a_message_without_records_is_done_with(stop: threading.Event) -> None:
    queue = Queue(stop, [QueuedMessage("test", '{"Event": "s3:TestEvent"}', 1)])

    consume(stop, queue, Taking())

    assert queue.deleted == ["test"]


def test_an_unreadable_message_is_left_to_be_set_aside(stop: threading.Event) -> None:
    queue = Queue(stop, [QueuedMessage("odd", "hello", 1), message("a")])

    consume(stop, queue, Taking())

    assert (queue.deleted, queue.given_back) == (["a"], [])


@pytest.mark.parametrize(
    "error",
    [ApiError("batch_closed"), SourceRefusedError("x"), DatabaseError("x"), StorageError("x")],
)
def test_an_event_that_fails_alone_is_left_to_be_set_aside(
    stop: threading.Event, error: Exception
) -> None:
    queue, taking = Queue(stop, [message("a"), message("b")]), Taking(a=error)

    consume(stop, queue, taking)

    assert (queue.deleted, queue.given_back) == (["b"], [])


@pytest.mark.parametrize(
    "error",
    [ApiError("system_full"), DatabaseUnavailableError("x"), StorageUnavailableError("x")],
)
def test_what_holds_for_all_gives_back_what_is_left(
    stop: threading.Event, error: Exception
) -> None:
    queue = Queue(stop, [message("a"), message("b"), message("c")])

    consume(stop, queue, Taking(b=error))

    assert (queue.deleted, queue.given_back) == (["a"], ["b", "c"])


@pytest.mark.parametrize(
    "error",
    [ApiError("system_full"), DatabaseUnavailableError("x"), StorageUnavailableError("x")],
)
def test_nothing_is_received_while_nothing_can_be_handled(
    stop: threading.Event, error: Exception
) -> None:
    queue, taking = Queue(stop, [message("a")]), Taking()

    consume(stop, queue, taking, ready=[error, error])

    assert (queue.deleted, queue.asked) == (["a"], 2)


def test_what_takes_too_long_together_is_given_back(stop: threading.Event) -> None:
    queue = Queue(stop, [message("a"), message("b")])

    consume(stop, queue, Taking(), limit_s=0)

    assert (queue.deleted, queue.given_back) == ([], ["a", "b"])


def test_no_more_is_asked_for_than_there_is_time_for(
    stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes back counted; after five times it would be set aside as if it were at fault."""
    clock = count(step=5)  # each look at it is 5 s later
    monkeypatch.setattr(consume_events, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    rounds = [[message(f"{number}") for number in range(10)], [message("a")], [message("b")]]
    queue = Queue(stop, *rounds)

    consume(stop, queue, Taking(), limit_s=20)

    assert queue.asked_for == [10, 3, 4, 5]
    assert len(queue.given_back) == 7


def test_what_was_received_when_the_end_came_is_given_back(stop: threading.Event) -> None:
    class Ending(Queue):
        def receive(self, *, at_most: int) -> Sequence[QueuedMessage]:
            del at_most
            stop.set()
            return [message("a")]

    queue, taking = Ending(stop), Taking()

    consume(stop, queue, taking)

    assert (taking.taken, queue.given_back) == ([], ["a"])
