"""What processes count together, with real processes that count and die."""

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.support.scraped import Scraped, parse
from workers.metric_files import FOLDER_VARIABLE, MetricFiles, folder_of, prepare
from workers.ocr.watchdog import EXIT_HUNG

ROOT = Path(__file__).parents[3]
COUNT = """
import os, sys
from workers import work_metrics
work_metrics.note_ready(["recognize"])
work_metrics.count_page("ok", {"route": "ocr", "durations": {"render": 0.2, "detect": 1.0}})
print("counted", flush=True)
sys.stdin.read()
os._exit(9)  # without a word, as a slot that is killed
"""


def start(folder: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", COUNT],
        cwd=ROOT,
        env={FOLDER_VARIABLE: str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "counted\n"
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.communicate(timeout=60)


def shown(files: MetricFiles) -> Scraped:
    registry = CollectorRegistry()
    registry.register(files)
    return parse(generate_latest(registry).decode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = folder_of(tmp_path / "worker.json")
    prepare(folder)
    return folder


def test_processes_count_together(folder: Path) -> None:
    processes = [start(folder), start(folder)]

    scraped = shown(MetricFiles(folder))

    for process in processes:
        end(process)
    assert scraped.value("pagefleet_pages_total", outcome="ok", route="ocr") == 2
    assert scraped.value("pagefleet_ready_slots", queue="recognize") == 2
    assert scraped.types["pagefleet_page_seconds"] == "histogram"
    assert scraped.value("pagefleet_page_seconds_count", route="ocr") == 2


def test_what_a_dead_process_counted_stays_and_its_gauges_go(folder: Path) -> None:
    files = MetricFiles(folder)
    living, dying = start(folder), start(folder)
    end(dying)

    files.bury_dead()
    scraped = shown(files)

    end(living)
    assert scraped.value("pagefleet_ready_slots", queue="recognize") == 1
    assert scraped.value("pagefleet_pages_total", outcome="ok") == 2
    assert scraped.value("pagefleet_page_seconds_count") == 2
    assert scraped.value("pagefleet_page_seconds_bucket", le="2.5") == 2
    assert scraped.value("pagefleet_page_seconds_bucket", le="1.0") == 0


def test_generations_of_the_dead_leave_one_file_of_each_kind(folder: Path) -> None:
    files = MetricFiles(folder)
    for _ in range(3):
        end(start(folder))
        files.bury_dead()

    scraped = shown(files)

    assert {file.name for file in folder.iterdir()} == {"counter_0.db", "histogram_0.db"}
    assert scraped.value("pagefleet_pages_total", outcome="ok") == 3
    assert scraped.value("pagefleet_page_stage_seconds_sum", stage="detect") == 3.0
    assert scraped.find("pagefleet_ready_slots") is None


def test_a_living_process_keeps_counting_into_its_file(folder: Path) -> None:
    files = MetricFiles(folder)
    living = start(folder)

    files.bury_dead()

    assert shown(files).value("pagefleet_ready_slots") == 1
    end(living)


def test_a_process_that_died_before_it_counted_is_no_hindrance(folder: Path) -> None:
    files = MetricFiles(folder)
    dead = start(folder)
    end(dead)
    (folder / f"counter_{dead.pid}.db").write_bytes(b"")

    before = shown(files)
    files.bury_dead()

    assert before.value("pagefleet_page_seconds_count") == 1
    assert shown(files).value("pagefleet_page_seconds_count") == 1
    assert not (folder / f"counter_{dead.pid}.db").exists()


def test_a_worker_begins_with_nothing(folder: Path) -> None:
    end(start(folder))

    prepare(folder)

    assert list(folder.iterdir()) == []


HANG = """
import threading
from workers.ocr.watchdog import Watchdog
from workers.work_metrics import EngineMetrics
with Watchdog(0.2, before_end=EngineMetrics("cpu").hung).watching():
    threading.Event().wait()
"""


def test_a_process_that_the_watchdog_ends_is_counted_all_the_same(folder: Path) -> None:
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", HANG],
        cwd=ROOT,
        env={FOLDER_VARIABLE: str(folder)},
        check=False,
        capture_output=True,
        timeout=120,
    )

    scraped = shown(MetricFiles(folder))
    assert ended.returncode == EXIT_HUNG, ended.stderr
    assert scraped.value("pagefleet_slots_ended_total", reason="hung") == 1
