"""Logs: one JSON line an event, with the ids of the work at hand bound to it."""

import logging
import sys
from typing import Any

import structlog
from celery import signals

_LEVELS = logging.getLevelNamesMapping()


def configure_logging(level: str) -> None:
    """Send this process's logs, ours and the libraries', to stderr as JSON lines."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level.upper()])
    # What they say at info is a line for every message and every request.
    for name in ("botocore", "boto3", "urllib3", "httpx", "httpcore", "kombu", "amqp"):
        logging.getLogger(name).setLevel(logging.WARNING)


def bind_tasks() -> None:
    """Bind the id of the running task to every log line of its work."""
    signals.task_prerun.connect(_bind, weak=False)
    signals.task_postrun.connect(_unbind, weak=False)


def _bind(*, task_id: str, task: Any, **_: object) -> None:  # noqa: ANN401 - Celery's own type is generic
    structlog.contextvars.bind_contextvars(task_id=task_id, task=task.name)


def _unbind(**_: object) -> None:
    structlog.contextvars.clear_contextvars()
