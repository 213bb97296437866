"""A worker that is to end does so in time, whatever hangs in it."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Any

import structlog
from billiard.process import active_children

log = structlog.get_logger(__name__)

EXIT_FORCED = 1
# For what Celery does once running tasks have had their time: telling the pool, and a broker that
# may not answer, which takes it 5 s a call.
ORDERLY_END_S = 12
# For pool children to put their rows back, which is one UPDATE.
CHILDREN_END_S = 4
_POLL_S = 0.05


def end_now(status: int) -> None:
    """End this worker with all its pool children, which give their work back first.

    Not in order: Celery's main thread may be what hangs. What it holds of messages is delivered
    again after the visibility timeout, and the sweep sends the rows sooner.
    """
    children = list(active_children())
    _signal(children, signal.SIGTERM)
    deadline_s = time.monotonic() + CHILDREN_END_S
    while any(_runs(child) for child in children) and time.monotonic() < deadline_s:
        threading.Event().wait(_POLL_S)
    _signal([child for child in children if _runs(child)], signal.SIGKILL)
    logging.shutdown()
    os._exit(status)


def bound_end(*, soft_shutdown_s: float) -> threading.Event:
    """See to it that SIGTERM ends this process in time; for the main thread.

    Celery's own handler goes first. A broker that is connected and silent keeps it from ending:
    each of its calls waits for a time-out of its own.

    Args:
        soft_shutdown_s: for how long running tasks may go on.

    Returns:
        What is set once the process was told to end.
    """
    is_ending = threading.Event()
    orderly: Any = signal.getsignal(signal.SIGTERM)
    limit_s = soft_shutdown_s + ORDERLY_END_S

    def end(number: int, frame: FrameType | None) -> None:
        is_ending.set()
        _in_background(limit_s, _end_late)
        orderly(number, frame)

    signal.signal(signal.SIGTERM, end)
    return is_ending


def _end_late() -> None:
    log.error("worker did not end in time, and is ended")
    end_now(EXIT_FORCED)


def _in_background(delay_s: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(delay_s, act)
    timer.daemon = True  # an orderly end does not wait for it
    timer.start()


def _signal(children: Iterable[Any], number: int) -> None:
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)


def _runs(child: Any) -> bool:  # noqa: ANN401 - billiard has no types
    try:
        return child.exitcode is None
    except (AssertionError, ChildProcessError):  # reaped by the main thread meanwhile
        return False
