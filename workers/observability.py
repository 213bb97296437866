"""Logs: one JSON line an event, with the ids of the work at hand bound to it."""

import json
import logging
import os
import re
import sys
from datetime import UTC, datetime
from typing import IO, Any

import structlog
from celery import signals

_LEVELS = logging.getLevelNamesMapping()
# User and password, or token, of an address, up to the last @ before its path, as some passwords
# hold one; and what makes an address presigned. Our own lines name neither; an exception of a
# library, with its traceback, may.
_CREDENTIALS = re.compile(r"(?<=://)(?:[^/\s\"]*:[^/\s\"]*|[^/?#\s\"]+)(?=@)")
_SIGNATURE = re.compile(
    r"(?<=Signature=)[^&\s\"]+|(?<=Security-Token=)[^&\s\"]+|(?<=password=)[^&\s\"]+"
)


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
                _without_credentials,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level.upper()])
    logging.captureWarnings(capture=True)
    # The pool's own logger keeps to itself, with a handler and a format of its own.
    pool = logging.getLogger("multiprocessing")
    pool.handlers.clear()
    pool.propagate = True
    # What they say at info is a line for every message and every request.
    for name in ("botocore", "boto3", "urllib3", "httpx", "httpcore", "kombu", "amqp"):
        logging.getLogger(name).setLevel(logging.WARNING)


def worker_says(message: str, _: IO[str] | None = None) -> None:
    """Write what Celery says to people when it is told to stop, as one line of the log.

    It comes from a signal handler, where the stream of the log may be in the middle of a line.
    """
    line = {
        "event": message.strip(),
        "level": "info",
        "logger": "celery.apps.worker",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),  # as the others
    }
    os.write(sys.stderr.fileno(), f"{json.dumps(line)}\n".encode())


def _without_credentials(_: Any, __: str, line: Any) -> str:  # noqa: ANN401 - structlog's own signature
    return _SIGNATURE.sub("**", _CREDENTIALS.sub("**", str(line)))


def bind_tasks() -> None:
    """Bind the id of the running task to every log line of its work."""
    signals.task_prerun.connect(_bind, weak=False)
    signals.task_postrun.connect(_unbind, weak=False)


def _bind(*, task_id: str, task: Any, **_: object) -> None:  # noqa: ANN401 - Celery's own type is generic
    structlog.contextvars.bind_contextvars(task_id=task_id, task=task.name)


def _unbind(**_: object) -> None:
    structlog.contextvars.clear_contextvars()
