"""Every task's effective options, and every Celery setting, read back from the application."""

import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery, Task
from celery.app.defaults import SETTING_KEYS

from workers.app import HostExhaustedError, app, work_task
from workers.celeryconfig import DRAW_TASK, QUEUES, ROUTES, celery_options
from workers.result_backend import CountingBackend
from workers.settings import WorkerSettings

HARD_LIMIT_S = 900
VISIBILITY_TIMEOUT_S = 3_600

SETTINGS = WorkerSettings(
    database_url="postgresql://localhost/pagefleet",
    redis_url="redis://:secret@localhost:1/0",
    s3_bucket="pagefleet",
)

EXPECTED_SETTINGS: dict[str, Any] = {
    "accept_content": ["json"],
    "result_accept_content": ["json"],
    "task_serializer": "json",
    "result_serializer": "json",
    "enable_utc": True,
    "timezone": "UTC",
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_acks_on_failure": True,
    "task_acks_on_timeout": True,
    "task_time_limit": HARD_LIMIT_S,
    "task_soft_time_limit": None,
    "task_track_started": True,
    "task_send_sent_event": False,
    "task_default_queue": "split",
    "task_create_missing_queues": False,
    "task_store_errors_even_if_ignored": False,
    "worker_prefetch_multiplier": 1,
    "worker_deduplicate_successful_tasks": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "result_backend": "redis://:secret@localhost:1/0",
    "override_backends": {
        "redis": "workers.result_backend:CountingBackend",
        "rediss": "workers.result_backend:CountingBackend",
    },
    "result_expires": 86_400,
    "result_chord_expires": 7 * 86_400,
    "result_backend_transport_options": {"global_keyprefix": "pagefleet:"},
    "redis_socket_timeout": 30,
    "redis_socket_connect_timeout": 5,
    "redis_socket_keepalive": True,
    "redis_backend_health_check_interval": 25,
    "redis_retry_on_timeout": True,
    "worker_pool": "prefork",
    "worker_pool_start_method": "spawn",
    "worker_proc_alive_timeout": 300,
    "worker_max_memory_per_child": None,
    "worker_soft_shutdown_timeout": 60.0,
    "worker_enable_soft_shutdown_on_idle": False,
    "worker_send_task_events": True,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
    "worker_enable_remote_control": True,
    "broker_url": "redis://:secret@localhost:1/0",
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "broker_channel_error_retry": True,
    "broker_pool_acquire_timeout": 10,
    "broker_transport_options": {
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "global_keyprefix": "pagefleet:",
        "priority_steps": [0, 5],
        "sep": ":",
        "max_retries": 1,
        "interval_start": 0,
    },
    "imports": (
        "workers.tasks.lifecycle",
        "workers.tasks.documents",
        "workers.tasks.pages",
    ),
}

EXPECTED_TASK_OPTIONS: dict[str, Any] = {
    "acks_late": True,
    "reject_on_worker_lost": True,
    "acks_on_failure_or_timeout": True,
    "ignore_result": True,
    "max_retries": None,
    "time_limit": HARD_LIMIT_S,
    "soft_time_limit": None,
    "serializer": "json",
    "rate_limit": None,
    "track_started": True,
}
# A message over which its process dies must not come again: nobody counts how often.
NOT_OWED: dict[str, Any] = {"acks_late": False, "reject_on_worker_lost": False}


@pytest.fixture
def configured() -> Iterator[Celery]:
    """An application with our settings, apart from the one that the process shares."""
    application = Celery("test", set_as_current=False)
    application.add_defaults(lambda: celery_options(SETTINGS))
    yield application
    application.close()


@pytest.mark.parametrize("name", sorted(EXPECTED_SETTINGS))
def test_a_setting_of_celery_has_its_chosen_value(configured: Celery, name: str) -> None:
    assert configured.conf[name] == EXPECTED_SETTINGS[name]


def test_no_setting_of_celery_is_made_without_being_checked_here() -> None:
    made = set(celery_options(SETTINGS)) - {"task_queues", "task_routes"}

    assert made <= set(EXPECTED_SETTINGS)


def test_every_setting_is_one_that_celery_knows() -> None:
    # Read by Celery's Redis back end and by its loader, but missing from its own table.
    known = {*SETTING_KEYS, "redis_backend_health_check_interval", "override_backends"}

    assert set(celery_options(SETTINGS)) <= known


def test_the_queues_are_declared_by_name(configured: Celery) -> None:
    assert [queue.name for queue in configured.conf.task_queues] == list(QUEUES)


def test_no_queue_hangs_on_a_binding(configured: Celery) -> None:
    assert {queue.exchange.name for queue in configured.conf.task_queues} == {""}


@pytest.mark.usefixtures("environment")
def test_a_spawned_pool_child_has_the_same_settings() -> None:
    in_the_child = pickle.loads(pickle.dumps(app))  # noqa: S301 - what billiard does

    assert in_the_child.conf.result_backend == EXPECTED_SETTINGS["result_backend"]
    assert in_the_child.conf.imports == EXPECTED_SETTINGS["imports"]
    assert isinstance(in_the_child.backend, CountingBackend)


def our_tasks() -> dict[str, Task[..., Any]]:
    app.loader.import_default_modules()
    return {name: task for name, task in app.tasks.items() if not name.startswith("celery.")}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_DATABASE_URL", "postgresql://localhost/pagefleet")
    monkeypatch.setenv("PAGEFLEET_REDIS_URL", "redis://:secret@localhost:1/0")
    monkeypatch.setenv("PAGEFLEET_S3_BUCKET", "pagefleet")


@pytest.mark.usefixtures("environment")
def test_the_tasks_are_those_that_have_a_route() -> None:
    assert set(our_tasks()) == set(ROUTES)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("option", sorted(EXPECTED_TASK_OPTIONS))
@pytest.mark.parametrize("name", sorted(ROUTES))
def test_a_task_has_its_chosen_options(name: str, option: str) -> None:
    own = getattr(our_tasks()[name], option)

    # What a task leaves open is taken from the application's settings when it runs.
    effective = own if own is not None else app.conf.get(f"task_{option}")
    chosen = {**EXPECTED_TASK_OPTIONS, **(NOT_OWED if name == DRAW_TASK else {})}
    assert effective == chosen[option]


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("name", sorted(ROUTES))
def test_a_task_goes_to_its_own_queue(name: str) -> None:
    route = app.amqp.router.route({}, name)

    assert route["queue"].name == ROUTES[name]


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("name", sorted(ROUTES))
def test_no_memory_error_leaves_a_task(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted() -> None:
        raise MemoryError

    task = our_tasks()[name]
    monkeypatch.setattr(f"{task.__module__}.current_runtime", exhausted)
    parameters = inspect.signature(task.run).parameters

    with pytest.raises(HostExhaustedError):
        task.run(*parameters)


def test_a_task_without_a_route_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="no route"):
        work_task(name="documents.misspelt")
