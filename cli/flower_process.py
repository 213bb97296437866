"""Flower as a process: ``python -m cli.flower_process``, then Celery's arguments.

It ends in time: Flower ends by an exception out of its signal handler, and where that reaches it in
code that swallows exceptions, or while a thread of its pool waits for a broker that does not
answer, it runs on. And all of it asks for the password but ``/healthcheck``, which says ``OK``.
"""

import os
import runpy
import signal
import sys
import threading
from typing import Any

_END_LIMIT_S = 10


def end_in_time(limit_s: float) -> None:
    """See to it that SIGTERM and Ctrl-C end this process after ``limit_s`` seconds at most.

    The signal's number comes through a pipe, which no exception can keep it from. For the main
    thread. The status is 0: Flower keeps nothing that could be lost.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)

    def watch() -> None:
        ends = {signal.SIGTERM, signal.SIGINT}
        while not ends.intersection(os.read(reader, 1)):
            pass
        threading.Event().wait(limit_s)
        sys.stderr.write("flower did not end in time, and is ended\n")
        os._exit(0)

    threading.Thread(target=watch, name="end in time", daemon=True).start()


def guard_metrics() -> None:
    """Let ``/metrics``, which names workers and tasks, ask for the password as well."""
    from flower.views.monitor import Metrics

    def ask_for_password(handler: Any) -> None:  # noqa: ANN401 - Flower publishes no types
        # Looking at it raises the 401 of Flower's other pages.
        _ = handler.current_user

    Metrics.prepare = ask_for_password


if __name__ == "__main__":
    end_in_time(_END_LIMIT_S)
    guard_metrics()
    runpy.run_module("celery", run_name="__main__", alter_sys=True)
