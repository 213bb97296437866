"""What happens when a worker and its pool children start; Celery imports this with the tasks."""

from billiard import current_process
from celery import signals

from workers.observability import bind_tasks, configure_logging
from workers.runtime import start_slot
from workers.settings import OcrSettings, read_settings


def connect() -> None:
    """Connect the signals of this process; in a spawned pool child this runs again."""
    signals.setup_logging.connect(_configure_logging, weak=False)
    signals.worker_process_init.connect(_start_slot, weak=False)
    bind_tasks()


def _configure_logging(**_: object) -> None:
    configure_logging(read_settings(OcrSettings).log_level)


def _start_slot(**_: object) -> None:
    _configure_logging()
    start_slot(getattr(current_process(), "index", 0))


connect()
