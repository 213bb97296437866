import sys

import pytest

from cli.errors import CommandError
from cli.worker import check_cores, default_slots, worker_command
from workers.settings import WorkerSettings


def make_settings(**values: object) -> WorkerSettings:
    required = {
        "database_url": "postgresql://h/d",
        "redis_url": "redis://h",
        "s3_bucket": "b",
        "device": "cpu",
    }
    return WorkerSettings.model_validate(required | values)


def test_the_worker_is_celery_with_the_options_that_the_project_needs() -> None:
    command = worker_command(["split", "assemble"], slots=2, name="w@%h", log_level="info")

    assert command == [
        *(sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker"),
        *("-Q", "split,assemble", "--concurrency", "2", "-n", "w@%h", "--loglevel", "INFO"),
        *("-E", "--without-gossip", "--without-mingle"),
    ]


def test_without_a_gpu_there_is_a_slot_for_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})

    assert default_slots(make_settings(), ["recognize"], gpu_count=2) == 3


def test_there_is_a_slot_for_every_gpu() -> None:
    assert default_slots(make_settings(device="auto"), ["recognize"], gpu_count=2) == 2


def test_queues_that_wait_more_than_they_compute_have_two_slots() -> None:
    assert default_slots(make_settings(), ["split", "assemble"], gpu_count=0) == 2


def test_a_setting_stands_above_what_the_machine_has() -> None:
    assert default_slots(make_settings(slots=7), ["recognize"], gpu_count=2) == 7


def test_slots_that_would_take_each_others_cores_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})

    with pytest.raises(CommandError, match="3 slots with PAGEFLEET_OCR_THREADS=2"):
        check_cores(make_settings(ocr_threads=2), ["recognize"], 3)


def test_slots_within_the_cores_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})

    check_cores(make_settings(ocr_threads=2), ["recognize"], 2)
    check_cores(make_settings(ocr_threads=2), ["assemble"], 9)
