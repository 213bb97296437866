"""Celery's settings, each of them chosen; ``tests/test_tasks.py`` reads the effective values.

The measurements behind them are in ARCHITECTURE.md, "Celery settings".
"""

from typing import Any

from kombu import Exchange, Queue

from db.states import Priority
from workers.settings import WorkerSettings, read_settings

SPLIT_QUEUE = "split"
RECOGNIZE_QUEUE = "recognize"
ASSEMBLE_QUEUE = "assemble"
EXPORT_QUEUE = "export"
QUEUES = (SPLIT_QUEUE, RECOGNIZE_QUEUE, ASSEMBLE_QUEUE, EXPORT_QUEUE)

SPLIT_TASK = "documents.split"
RECOGNIZE_TASK = "pages.recognize_chunk"
ASSEMBLE_TASK = "documents.assemble"
EXPORT_TASK = "documents.export"
DRAW_TASK = "pages.draw"
ROUTES = {
    SPLIT_TASK: SPLIT_QUEUE,
    RECOGNIZE_TASK: RECOGNIZE_QUEUE,
    ASSEMBLE_TASK: ASSEMBLE_QUEUE,
    EXPORT_TASK: EXPORT_QUEUE,
    DRAW_TASK: SPLIT_QUEUE,  # whose workers open documents, and need no GPU
}

# Redis has a list for each; a worker takes from the first one that is not empty. 0 is also what
# a message without a priority has.
PRIORITIES = {Priority.INTERACTIVE: 0, Priority.BULK: 5}
SEPARATOR = ":"

RESULT_BACKEND = "workers.result_backend:CountingBackend"
DAY_S = 86_400
# A replacement child that loads a model is killed for ever with the default of 4 s.
CHILD_START_LIMIT_S = 300


def queue_list(queue: str, priority: Priority) -> str:
    """Return the key, short of the prefix, of the list of a queue's messages of one priority."""
    step = PRIORITIES[priority]
    return f"{queue}{SEPARATOR}{step}" if step else queue


def __getattr__(name: str) -> dict[str, Any]:
    """Make ``options`` from the environment when Celery asks for it, and not at import.

    Raises:
        AttributeError: any other name.
        SettingsError: the environment is wrong.
    """
    if name != "options":
        raise AttributeError(name)
    return celery_options(read_settings(WorkerSettings))


def celery_options(settings: WorkerSettings) -> dict[str, Any]:
    """Return all options of the Celery application; pure."""
    return {
        **_serialization(),
        **_delivery(settings),
        **_results(settings),
        **_worker(settings),
        **_broker(settings),
        "imports": (
            "workers.tasks.lifecycle",
            "workers.tasks.documents",
            "workers.tasks.pages",
        ),
    }


def _serialization() -> dict[str, Any]:
    return {
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        "task_serializer": "json",
        "result_serializer": "json",
        "enable_utc": True,
        "timezone": "UTC",
    }


def _delivery(settings: WorkerSettings) -> dict[str, Any]:
    return {
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_acks_on_failure": True,
        "task_acks_on_timeout": True,
        "task_time_limit": settings.task_hard_limit_s,
        "task_track_started": True,  # so that Flower and an operator see what runs
        "task_send_sent_event": False,  # the API must not depend on who watches
        # The nameless exchange needs no binding in Redis, so none can be lost.
        "task_queues": [Queue(name, Exchange(""), routing_key=name) for name in QUEUES],
        "task_routes": {task: {"queue": queue} for task, queue in ROUTES.items()},
        "task_default_queue": SPLIT_QUEUE,
        "task_create_missing_queues": False,  # a misspelt queue is an error, not a place to die
        "task_store_errors_even_if_ignored": False,
        "worker_prefetch_multiplier": 1,
        # Skips the chord count of a redelivered task: the chord would hang.
        "worker_deduplicate_successful_tasks": False,
        # With the result back end down it acknowledges a running task as revoked.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
    }


def _results(settings: WorkerSettings) -> dict[str, Any]:
    return {
        "result_backend": settings.redis_url.get_secret_value(),
        "override_backends": dict.fromkeys(("redis", "rediss"), RESULT_BACKEND),
        "result_expires": DAY_S,
        "result_chord_expires": 7 * DAY_S,  # a chord may wait behind a long queue
        "result_backend_transport_options": {"global_keyprefix": settings.redis_key_prefix},
        "redis_socket_timeout": 30,
        "redis_socket_connect_timeout": 5,
        "redis_socket_keepalive": True,
        "redis_backend_health_check_interval": 25,
        "redis_retry_on_timeout": True,
    }


def _worker(settings: WorkerSettings) -> dict[str, Any]:
    return {
        "worker_pool": "prefork",  # solo answers no ping while it works, threads know no limits
        "worker_pool_start_method": "spawn",  # CUDA and gRPC do not survive a fork
        "worker_proc_alive_timeout": CHILD_START_LIMIT_S,
        # In KiB, after a task; workers.tasks.slot_memory says what is measured.
        "worker_max_memory_per_child": settings.slot_host_memory_bytes // 1024 or None,
        "worker_soft_shutdown_timeout": settings.soft_shutdown_s,
        "worker_enable_soft_shutdown_on_idle": False,
        "worker_send_task_events": True,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_enable_remote_control": True,  # Flower reads the workers' settings through it
    }


def _broker(settings: WorkerSettings) -> dict[str, Any]:
    return {
        "broker_url": settings.redis_url.get_secret_value(),
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # A refusal, as of a broker without memory, is waited out; by default it ends the worker.
        "broker_channel_error_retry": True,
        "broker_pool_acquire_timeout": 10,
        "broker_transport_options": {
            # One value for the whole fleet, producers too: the shortest wins.
            "visibility_timeout": settings.redis_visibility_timeout_s,
            "unacked_restore_interval": 10,
            "unacked_restore_throttle": 1,
            "socket_timeout": 30,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": 25,
            "global_keyprefix": settings.redis_key_prefix,
            "priority_steps": list(PRIORITIES.values()),
            "sep": SEPARATOR,  # recognize, recognize:5
            # Whoever sends has the sweep behind it: by default a sender without a connection
            # sleeps 6 s before it says so, and an upload would wait for that.
            "max_retries": 1,
            "interval_start": 0,
        },
    }
