from collections.abc import Awaitable, Callable

import anyio
import pytest
import structlog

from api.background import Background, StillRunningError

SOON_S = 0.05


async def with_background(test: Callable[[Background], Awaitable[None]]) -> None:
    background = Background()
    async with anyio.create_task_group() as tasks:
        await tasks.start(background.run)
        await test(background)
        tasks.cancel_scope.cancel()


async def answer() -> str:
    return "done"


async def fail() -> str:
    raise LookupError("none")


def test_what_ends_in_time_is_returned() -> None:
    async def test(background: Background) -> None:
        assert await background.outcome(answer, within_s=30) == "done"

    anyio.run(with_background, test)


def test_what_fails_in_time_is_raised_and_harms_nobody_else() -> None:
    async def test(background: Background) -> None:
        with pytest.raises(LookupError):
            await background.outcome(fail, within_s=30)
        assert await background.outcome(answer, within_s=30) == "done"

    anyio.run(with_background, test)


def test_what_takes_longer_goes_on() -> None:
    async def test(background: Background) -> None:
        may_end, has_ended = anyio.Event(), anyio.Event()

        async def wait() -> None:
            await may_end.wait()
            has_ended.set()

        with pytest.raises(StillRunningError):
            await background.outcome(wait, within_s=SOON_S)
        may_end.set()
        with anyio.fail_after(30):
            await has_ended.wait()

    anyio.run(with_background, test)


def test_what_fails_when_nobody_waits_any_more_is_logged() -> None:
    async def test(background: Background) -> None:
        may_end = anyio.Event()

        async def fail_later() -> None:
            await may_end.wait()
            raise LookupError("none")

        with pytest.raises(StillRunningError):
            await background.outcome(fail_later, within_s=SOON_S)
        may_end.set()
        await anyio.wait_all_tasks_blocked()

    with structlog.testing.capture_logs() as lines:
        anyio.run(with_background, test)

    assert [line["event"] for line in lines] == ["call failed in the background"]


def test_a_caller_that_is_cancelled_does_not_end_the_call() -> None:
    async def test(background: Background) -> None:
        may_end, has_ended = anyio.Event(), anyio.Event()

        async def wait() -> None:
            await may_end.wait()
            has_ended.set()

        with anyio.move_on_after(SOON_S):
            await background.outcome(wait, within_s=30)
        may_end.set()
        with anyio.fail_after(30):
            await has_ended.wait()

    anyio.run(with_background, test)


def test_nothing_is_begun_before_the_process_is() -> None:
    with pytest.raises(RuntimeError):
        anyio.run(lambda: Background().outcome(answer, within_s=1))
