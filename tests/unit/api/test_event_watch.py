"""Who waits is told what it has not seen, whatever goes wrong in between."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import anyio
import pytest
import structlog

from api.event_watch import EventWatch
from db.errors import DatabaseUnavailableError
from db.events import Event
from db.ids import new_id
from db.states import EventType

DOCUMENT = new_id()


def event(number: int) -> Event:
    return Event(number, EventType.PROGRESS, datetime.now(UTC))


class Log:
    """The events of one document; it may be away first."""

    def __init__(self, numbers: Sequence[int], *, failures: Sequence[Exception] = ()) -> None:
        self.numbers = list(numbers)
        self.failures = list(failures)
        self.questions: list[Mapping[UUID, int]] = []

    def __call__(self, after: Mapping[UUID, int]) -> Mapping[UUID, Sequence[Event]]:
        self.questions.append(after)
        if self.failures:
            raise self.failures.pop()
        return {
            document: [event(each) for each in self.numbers if each > number]
            for document, number in after.items()
        }


def run(log: Log, act: Callable[[EventWatch], Awaitable[None]]) -> None:
    async def main() -> None:
        watch = EventWatch(log)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch.run)
                await act(watch)
                tasks.cancel_scope.cancel()

    with structlog.testing.capture_logs():
        anyio.run(main)


def test_two_who_wait_for_one_document_are_told_what_each_has_not_seen() -> None:
    log = Log([1, 2, 3])
    seen: list[list[int]] = []

    async def act(watch: EventWatch) -> None:
        with watch.watching(DOCUMENT, after=0) as first, watch.watching(DOCUMENT, after=2) as other:
            seen.extend([[each.number for each in await who.next()] for who in (first, other)])

    run(log, act)

    assert seen == [[1, 2, 3], [3]]
    assert log.questions[0] == {DOCUMENT: 0}


def test_what_was_told_is_not_told_again() -> None:
    log = Log([1])
    seen: list[int] = []

    async def act(watch: EventWatch) -> None:
        with watch.watching(DOCUMENT, after=0) as watcher:
            seen.extend([each.number for each in await watcher.next()])
            log.numbers.append(2)
            seen.extend([each.number for each in await watcher.next()])

    run(log, act)

    assert seen == [1, 2]


@pytest.mark.parametrize("failure", [DatabaseUnavailableError("away"), ValueError("a bug")])
def test_a_question_that_fails_is_asked_again(failure: Exception) -> None:
    log = Log([1], failures=[failure])
    seen: list[int] = []

    async def act(watch: EventWatch) -> None:
        with watch.watching(DOCUMENT, after=0) as watcher:
            seen.extend([each.number for each in await watcher.next()])

    run(log, act)

    assert seen == [1]
    assert len(log.questions) == 2


def test_nobody_is_asked_while_nobody_waits() -> None:
    log = Log([])

    async def act(watch: EventWatch) -> None:
        with watch.watching(DOCUMENT, after=0):
            pass
        await anyio.sleep(1)

    run(log, act)

    assert len(log.questions) <= 1


def test_at_the_end_of_the_process_everybody_goes() -> None:
    ended: list[Sequence[Event]] = []

    async def act(watch: EventWatch) -> None:
        with watch.watching(DOCUMENT, after=0) as watcher:
            watch.end()
            ended.extend([await watcher.next(), await watcher.next()])
        with watch.watching(DOCUMENT, after=0) as late:
            ended.append(await late.next())

    run(Log([]), act)

    assert ended == [[], [], []]
