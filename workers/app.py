"""The Celery application, and the one way to declare a task."""

import functools
from collections.abc import Callable
from typing import Any

from celery import Celery, Task

from workers.celeryconfig import ROUTES

app = Celery("pagefleet", set_as_current=True)
# By name: it is read when a setting is first needed, so importing this reads no environment, and
# again in every spawned pool child, which gets the application pickled and with it only the name.
app.config_from_object("workers.celeryconfig:options")


class HostExhaustedError(Exception):
    """This machine has no memory, thread, descriptor or disk left for the work.

    It stands in for ``MemoryError`` when a task ends: Celery answers that one, out of a pool
    child, by ending the whole worker.
    """


def work_task(
    *, name: str, hard_limit_s: int | None = None, is_owed: bool = True
) -> Callable[[Callable[..., dict[str, Any] | None]], Task[..., dict[str, Any] | None]]:
    """Declare a task that is acknowledged only after its work is committed, if it is owed.

    No ``MemoryError`` leaves it. Celery takes misspelt options without a word, so tasks are
    declared through this function, whose options a type checker knows. The name is explicit:
    moving a module must not orphan the messages in a queue.

    Args:
        name: one of ``workers.celeryconfig.ROUTES``, which also fixes the queue.
        hard_limit_s: seconds after which the pool child is killed; None: the setting
            ``PAGEFLEET_TASK_HARD_LIMIT_S``.
        is_owed: whether a row says that the work is to be done, and counts its attempts. What is
            not is acknowledged before it begins: a message over which its process dies would
            otherwise be back at once, for ever.

    Raises:
        ValueError: the name has no route, so its messages would go astray.
    """
    if name not in ROUTES:
        raise ValueError(f"the task {name} has no route")
    options: dict[str, Any] = {
        "bind": True,
        "name": name,
        "acks_late": is_owed,
        "reject_on_worker_lost": is_owed,
        # Results live in storage and Postgres; a flat chord header is counted all the same.
        "ignore_result": True,
        "max_retries": None,  # workers.failures decides when to stop
    }
    if hard_limit_s is not None:
        # No soft limit: it cannot interrupt native code and can hit a COMMIT.
        options["time_limit"] = hard_limit_s

    def declare(
        function: Callable[..., dict[str, Any] | None],
    ) -> Task[..., dict[str, Any] | None]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> dict[str, Any] | None:  # noqa: ANN401 - a task's own
            try:
                return function(*args, **kwargs)
            except MemoryError as error:
                raise HostExhaustedError("no memory is left on this machine") from error

        task: Task[..., dict[str, Any] | None] = app.task(**options)(run)
        return task

    return declare
