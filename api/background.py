"""Calls that go on when the request that began them is answered."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup, TaskStatus

T = TypeVar("T")

log = structlog.get_logger(__name__)


class StillRunningError(Exception):
    """The call has not ended in the time that somebody could wait for it; it goes on."""


class Background:
    """Runs calls in the event loop, until the process ends: what they do has to survive that."""

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Be there for calls, until cancelled; they are cancelled with it."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            await anyio.sleep_forever()

    async def outcome(self, call: Callable[[], Awaitable[T]], *, within_s: float) -> T:
        """Begin a call, and return what it returns if it ends in time.

        Args:
            call: is run once, whoever waits for it.
            within_s: for how long it is waited for.

        Raises:
            StillRunningError: it goes on.
            RuntimeError: the process has not begun, or ends; a mistake of the caller.

        What the call raises in time is raised here, and later on logged.
        """
        if self._tasks is None:
            raise RuntimeError("nothing runs calls in the background")
        running = _Running(call)
        self._tasks.start_soon(running.run)
        try:
            with anyio.move_on_after(within_s):
                await running.ended.wait()
        finally:
            running.is_left = True
        return running.outcome()


class _Running(Generic[T]):
    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self.ended = anyio.Event()
        self.is_left = False
        self._call = call
        self._returned: list[T] = []
        self._raised: Exception | None = None

    async def run(self) -> None:
        try:
            self._returned.append(await self._call())
        except Exception as error:
            self._raised = error
            if self.is_left:
                log.warning("call failed in the background", exc_info=error)
        finally:
            self.ended.set()

    def outcome(self) -> T:
        """Return what was returned, or raise what was raised.

        Raises:
            StillRunningError: neither was.
        """
        if self._raised is not None:
            raise self._raised
        if not self._returned:
            raise StillRunningError
        return self._returned[0]
