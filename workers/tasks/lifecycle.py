"""What happens when a worker and its pool children start; Celery imports this with the tasks."""

import os
import threading
from pathlib import Path

import structlog
from billiard import current_process
from celery import signals

from workers.heartbeat import started_file
from workers.observability import bind_tasks, configure_logging, worker_says
from workers.runtime import start_slot
from workers.settings import OcrSettings, WorkerSettings, read_settings
from workers.tasks import slot_memory, worker_life
from workers.tasks.failed_starts import EXIT_NOT_STARTED, FailedStarts
from workers.work_metrics import count_ended_slot

log = structlog.get_logger(__name__)

_PAUSE_BEFORE_NEXT_START_S = 5


def connect() -> None:
    """Connect the signals of this process; in a spawned pool child this runs again."""
    # Celery warns of a worker that runs as root before it sets up logging.
    signals.celeryd_init.connect(_configure_logging, weak=False)
    signals.celeryd_init.connect(_let_worker_say_lines, weak=False)
    signals.setup_logging.connect(_configure_logging, weak=False)
    signals.celeryd_after_setup.connect(_let_pool_wait_for_logging, weak=False)
    signals.worker_process_init.connect(_start_slot, weak=False)
    bind_tasks()
    worker_life.add_to_workers()


def _configure_logging(**_: object) -> None:
    configure_logging(read_settings(OcrSettings).log_level)


def _let_worker_say_lines(**_: object) -> None:
    from celery.apps import worker  # noqa: PLC0415 - a worker's main process alone has loaded it

    worker.safe_say = worker_says  # type: ignore[attr-defined]  # Celery has no setting for it


def _let_pool_wait_for_logging(**_: object) -> None:
    """Keep a pool child from logging in a format of its own before it has come to ours."""
    os.environ.pop("_MP_FORK_LOGLEVEL_", None)  # noqa: TID251 - billiard's own variable


def _start_slot(**_: object) -> None:
    _configure_logging()
    slot = getattr(current_process(), "index", 0)
    heartbeat_file = worker_life.heartbeat_file(read_settings(WorkerSettings))
    failed_starts = FailedStarts(heartbeat_file)
    try:
        runtime = start_slot(slot)
    except Exception:
        # Celery would log this and go on, and every message that such a child got would fail
        # and be gone. The pool starts another child, after a pause that spares the machine.
        log.critical("slot did not start", exc_info=True)
        threading.Event().wait(_PAUSE_BEFORE_NEXT_START_S)
        failed_starts.add(slot)
        count_ended_slot("not_started")
        os._exit(EXIT_NOT_STARTED)
    failed_starts.clear(slot)
    _note_start(started_file(heartbeat_file))
    slot_memory.measure_with(
        lambda: runtime.renderer.child_pid, limit_bytes=runtime.settings.slot_host_memory_bytes
    )


def _note_start(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError:
        # As with a heartbeat: no work is given up for it, and the probe says that it is missing.
        log.warning("start not noted", exc_info=True)


connect()
