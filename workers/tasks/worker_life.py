"""Watches the main process of a worker: that it lives, that it takes work, that it can.

By threads beside Celery's event loop, because it is this loop that may hang. A worker that is of
no use any more is ended with a status that says why, for whoever started it to start it anew.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from celery import bootsteps
from celery.worker import state

from workers import queue_room
from workers.app import app
from workers.broker import DispatchError
from workers.heartbeat import Heartbeat, default_file, started_file
from workers.settings import WorkerSettings, read_settings
from workers.stall import Glance, StallWatch
from workers.tasks.failed_starts import EXIT_NOT_STARTED, FailedStarts
from workers.tasks.worker_end import bound_end, end_now
from workers.tasks.worker_metrics import WorkerMetrics

log = structlog.get_logger(__name__)

EXIT_STALLED = 77
_TICK_S = 2.0
_LOOKS_PER_LIMIT = 8
_OVERDUE_S = 5  # past the limit that Celery itself keeps, or should


def heartbeat_file(settings: WorkerSettings) -> Path:
    """Return where a worker writes its heartbeat."""
    name = "+".join(sorted(settings.worker_queues)) or "worker"
    return settings.heartbeat_file or default_file(settings.home, name)


class WorkerLife(bootsteps.StartStopStep):
    """A part of Celery's worker, started before its pool and stopped after it."""

    def __init__(self, parent: Any, **options: Any) -> None:  # noqa: ANN401 - Celery's own
        super().__init__(parent, **options)
        self._settings = read_settings(WorkerSettings)
        file = heartbeat_file(self._settings)
        self._heartbeat = Heartbeat(file, name=file.stem)
        self._failed_starts = FailedStarts(file)
        self._started_file = started_file(file)
        self._killed: set[str] = set()
        self._stop = threading.Event()
        self._is_ending = threading.Event()
        self._ticked_at_s = time.monotonic()
        self._beats = threading.Thread(name="heartbeat", daemon=True)
        self._metrics = WorkerMetrics(self._settings, file, slots=parent.concurrency)

    def start(self, parent: Any) -> None:  # noqa: ANN401
        """Begin to watch; in the main thread, once Celery has its signals in place."""
        self._failed_starts.forget()
        self._started_file.unlink(missing_ok=True)
        self._is_ending = bound_end(soft_shutdown_s=self._settings.soft_shutdown_s)
        self._metrics.serve()
        self._beats = self._repeat("heartbeat", _TICK_S, lambda: self._beat(parent))
        stall_s = self._settings.stall_timeout_s
        watch = StallWatch()
        self._repeat("stall watch", stall_s / _LOOKS_PER_LIMIT, lambda: self._look(parent, watch))

    def register_with_event_loop(self, _parent: Any, hub: Any) -> None:  # noqa: ANN401
        """Take part in the event loop; Celery calls this again whenever it has reconnected."""
        self._tick()
        hub.call_repeatedly(_TICK_S, self._tick)

    def stop(self, parent: Any) -> None:  # noqa: ANN401, ARG002
        """Stop watching: the worker has ended in order."""
        self._stop.set()
        # Not the other thread, which may wait for a broker that does not answer.
        self._beats.join()
        self._heartbeat.remove()
        self._started_file.unlink(missing_ok=True)
        self._failed_starts.forget()

    def terminate(self, parent: Any) -> None:  # noqa: ANN401
        """Do the same: Celery calls an end in time this way."""
        self.stop(parent)

    def _tick(self) -> None:
        self._ticked_at_s = time.monotonic()

    def _repeat(self, name: str, interval_s: float, act: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            while not self._stop.wait(interval_s):
                act()

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _beat(self, worker: Any) -> None:  # noqa: ANN401
        # The loop stands still while running tasks get their time to end, which is bounded, and
        # while there is no broker, which restarting this worker would not bring back.
        is_excused = self._is_ending.is_set() or worker.consumer.connection is None
        self._heartbeat.beat(age_s=0 if is_excused else time.monotonic() - self._ticked_at_s)
        self._metrics.bury_dead()
        self._kill_overdue()
        if self._failed_starts.is_hopeless(worker.concurrency):
            log.critical("no slot can start, the worker is ended")
            self._heartbeat.remove()
            end_now(EXIT_NOT_STARTED)

    def _kill_overdue(self) -> None:
        """Kill pool children whose task Celery's own time limit did not end.

        A child that was stopped within its task ran on for minutes past that limit. Its message
        comes back as after any death of a child, and its row when the lease ends.
        """
        limit_s = self._settings.task_hard_limit_s + _OVERDUE_S
        for request in _active_requests():
            pid, started_at = request.worker_pid, request.time_start
            if not pid or not started_at or time.time() - started_at < limit_s:
                continue
            if request.id not in self._killed:
                self._killed.add(request.id)
                log.error("task is over its hard limit, its slot is killed", task_id=request.id)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _look(self, worker: Any, watch: StallWatch) -> None:  # noqa: ANN401
        if self._is_ending.is_set():
            return
        glance = Glance(
            taken=state.all_total_count[0],
            held=_held(worker.concurrency),
            slots=worker.concurrency,
            waiting=self._waiting(),
        )
        stalled_s = watch.stalled_s(glance, now_s=time.monotonic())
        if stalled_s >= self._settings.stall_timeout_s:
            log.error(
                "worker takes nothing from its queues, and is ended",
                waiting=glance.waiting,
                held=glance.held,
                slots=glance.slots,
                stalled_s=round(stalled_s),
            )
            end_now(EXIT_STALLED)

    def _waiting(self) -> int | None:
        try:
            waiting = queue_room.waiting()
        except DispatchError:
            return None
        return sum(waiting[queue] for queue in self._settings.worker_queues)


def _active_requests() -> tuple[Any, ...]:
    """Return the tasks that pool children work on, or none while that is changing."""
    try:
        return tuple(state.active_requests)
    except RuntimeError:
        return ()


def _held(slots: int) -> int:
    """Return how many tasks this worker has, or ``slots`` while that is changing."""
    try:
        # A task that outlived a lost connection is in the second set only.
        return len(set(state.reserved_requests) | set(state.active_requests))
    except RuntimeError:
        return slots


def add_to_workers() -> None:
    """Make it a part of every worker that this process runs."""
    app.steps["worker"].add(WorkerLife)
