"""How commands that run until they are stopped are told to stop."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from cli.errors import EXIT_FAILED


class TerminatedError(KeyboardInterrupt):
    """SIGTERM came, in the clothes of Ctrl-C, for whoever says what was done until then."""


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does; the process then ends by the signal all the same.

    For the main thread.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except TerminatedError:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def told_when_stopped(tell: Callable[[], None]) -> Iterator[None]:
    """Let ``tell`` speak where Ctrl-C, or what stands for it, ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        tell()
        raise


@contextmanager
def stop_on_signals(*, force_after_s: float | None = None) -> Iterator[threading.Event]:
    """Lend an event that SIGTERM, SIGHUP and Ctrl-C set; for the main thread.

    Args:
        force_after_s: seconds after which a process that was told to stop is ended, as one that
            waits for a server without an answer would be by SIGKILL; None: never.
    """
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        if force_after_s is not None and not stop.is_set():
            timer = threading.Timer(force_after_s, os._exit, (EXIT_FAILED,))
            timer.daemon = True  # an end in order does not wait for it
            timer.start()
        stop.set()

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
