"""Metrics of the programs beside the API, each started as users do and asked as Prometheus does."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from cli.samples import Sample
from tests.support.fake_gpu import GIB, FakeGpu
from tests.support.fleet import Fleet, free_port, wait_for
from tests.support.processes import pool_children
from tests.support.scraped import Scraped, scrape

LIMIT_S = 180.0
SPLITTER = ("worker", "--queues", "split", "--slots", "1")
RECOGNIZER = ("worker", "--queues", "recognize", "--slots", "2")

pytestmark = pytest.mark.timeout(600)


def start(fleet: Fleet, name: str, *arguments: str, **settings: str) -> int:
    """Start a program that shows its metrics; return its port."""
    port = free_port()
    fleet.start(name, *arguments, PAGEFLEET_METRICS_PORT=str(port), **settings)
    return port


def shown(port: int) -> Scraped | None:
    """Return what a program shows; None while it does not listen yet."""
    try:
        return scrape(f"http://127.0.0.1:{port}")
    except httpx.TransportError:
        return None


def wait_for_metrics(port: int, what: str, holds: Callable[[Scraped], bool]) -> Scraped:
    """Return what a program shows once a condition holds of it."""

    def look() -> Scraped | None:
        scraped = shown(port)
        return scraped if scraped is not None and holds(scraped) else None

    return wait_for(what, look, timeout_s=LIMIT_S)


def has_ready_slots(count: int) -> Callable[[Scraped], bool]:
    return lambda scraped: scraped.find("pagefleet_ready_slots", queue="recognize") == count


def test_the_pages_of_a_document_are_counted_by_all_slots_and_outlive_a_slot(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    idle_fleet.start("api", "api")
    idle_fleet.start("assembler", "worker", "--queues", "split,assemble", "--slots", "1")
    port = start(idle_fleet, "recognizer", *RECOGNIZER, PAGEFLEET_PAGE_CACHE="true")
    ready = wait_for_metrics(port, "two slots", has_ready_slots(2))
    idle_fleet.wait_for_api()
    pages = samples["scanned-letters.pdf"].page_count
    idle_fleet.submit(samples["scanned-letters.pdf"].path)

    read = wait_for_metrics(
        port, "its pages", lambda scraped: scraped.find("pagefleet_pages_total") == pages
    )
    victim = pool_children(idle_fleet.pid("recognizer"))[0]
    os.kill(victim, signal.SIGKILL)
    one_less = wait_for_metrics(port, "the gauge of the dead slot to go", has_ready_slots(1))
    replaced = wait_for_metrics(port, "another slot", has_ready_slots(2))

    assert ready.value("pagefleet_slots", queue="recognize") == 2
    assert ready.value("pagefleet_build_info", program="worker") == 1
    assert ready.value("pagefleet_model_info", device="cpu") == 1
    assert ready.value("pagefleet_slots_ended_total", reason="hung") == 0
    assert ready.value("process_resident_memory_bytes") > 1_000_000
    assert read.value("pagefleet_pages_total", outcome="ok", route="ocr") == pages
    assert read.value("pagefleet_page_seconds_count", route="ocr") == pages
    assert read.value("pagefleet_page_stage_seconds_sum", stage="recognize") > 0
    assert read.value("pagefleet_crops_total", what="kept") > 0
    assert read.value("pagefleet_truncated_pages_total") == 0
    assert read.value("pagefleet_minibatch_inputs_count") > 0
    assert read.value("pagefleet_minibatch_pixel_columns_total", what="padding") > 0
    assert read.value("pagefleet_page_cache_lookups_total", outcome="miss") == pages
    for later in (one_less, replaced):
        assert later.value("pagefleet_pages_total", outcome="ok", route="ocr") == pages


def test_a_worker_that_starts_anew_begins_at_nothing(idle_fleet: Fleet, tmp_path: Path) -> None:
    port = start(idle_fleet, "splitter", *SPLITTER)
    wait_for_metrics(port, "a slot", has_a_splitting_slot)
    idle_fleet.kill_group("splitter")
    of_dead = counted_in(tmp_path)

    port = start(idle_fleet, "splitter", *SPLITTER)
    wait_for_metrics(port, "the next worker", lambda _: True)

    left = counted_in(tmp_path)
    assert of_dead != set()
    # Neither as they were nor put together, as those of a slot that died.
    assert left & of_dead == set()
    assert [file for file in left if file.stem.endswith("_0")] == []


def counted_in(home: Path) -> set[Path]:
    return set(home.glob("heartbeats/*.metrics/*.db"))


def has_a_splitting_slot(scraped: Scraped) -> bool:
    return scraped.find("pagefleet_ready_slots", queue="split") == 1


def test_a_worker_shows_the_memory_of_its_gpu(idle_fleet: Fleet, tmp_path: Path) -> None:
    gpu = FakeGpu(tmp_path / "gpu.json")
    gpu.fill(20 * GIB)
    port = start(idle_fleet, "recognizer", *RECOGNIZER, **gpu.environment)
    before = wait_for_metrics(port, "the worker", lambda _: True)

    gpu.fill(79 * GIB)
    after = wait_for_metrics(port, "the worker", lambda _: True)

    assert before.value("pagefleet_gpu_memory_used_bytes", gpu="0") == 20 * GIB
    assert after.value("pagefleet_gpu_memory_used_bytes", gpu="0") == 79 * GIB
    assert after.value("pagefleet_gpu_memory_total_bytes", gpu="0") == 80 * GIB


def test_without_a_port_nothing_is_counted_in_files(idle_fleet: Fleet, tmp_path: Path) -> None:
    idle_fleet.start("splitter", *SPLITTER)
    heartbeats = tmp_path / "heartbeats"
    wait_for("a heartbeat", lambda: list(heartbeats.glob("*.json")), timeout_s=LIMIT_S)

    assert list(heartbeats.glob("*.metrics")) == []


def test_the_sweep_shows_its_rounds_and_what_it_sees_of_the_broker(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    port = start(idle_fleet, "reconciler", "reconcile")
    idle_fleet.start("api", "api")
    idle_fleet.wait_for_api()
    # Without a worker its message waits, is sent again, and waits too.
    idle_fleet.submit(samples["letters.pdf"].path)

    scraped = wait_for_metrics(
        port,
        "the message",
        lambda scraped: (scraped.find("pagefleet_queue_messages", queue="split") or 0) >= 1,
    )

    assert scraped.value("pagefleet_sweep_rounds_total", outcome="done") >= 1
    assert scraped.value("pagefleet_sweep_last_round_timestamp_seconds") > 1_000_000_000
    assert scraped.value("pagefleet_unacked_messages") == 0
    assert scraped.value("pagefleet_unacked_oldest_seconds") == 0
    assert scraped.value("pagefleet_visibility_timeout_seconds") == 3_600
    assert scraped.value("pagefleet_build_info", program="reconcile") == 1


def test_a_message_that_a_worker_holds_is_seen_with_its_age(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    port = start(idle_fleet, "reconciler", "reconcile")
    idle_fleet.start("api", "api")
    worker_port = start(idle_fleet, "splitter", *SPLITTER)
    wait_for_metrics(worker_port, "a slot", has_a_splitting_slot)
    idle_fleet.wait_for_api()
    # The worker takes the message, and its only slot does nothing with it.
    (child,) = pool_children(idle_fleet.pid("splitter"))
    os.kill(child, signal.SIGSTOP)
    try:
        idle_fleet.submit(samples["letters.pdf"].path)
        held = wait_for_metrics(
            port,
            "the message to grow old",
            lambda scraped: (scraped.find("pagefleet_unacked_oldest_seconds") or 0) > 2,
        )
    finally:
        os.kill(child, signal.SIGCONT)

    assert held.value("pagefleet_unacked_messages") >= 1


def test_the_sender_of_webhooks_shows_what_it_counts(idle_fleet: Fleet) -> None:
    port = start(idle_fleet, "webhooks", "webhooks")

    scraped = wait_for_metrics(port, "the sender", lambda _: True)

    assert scraped.value("pagefleet_build_info", program="webhooks") == 1
    assert scraped.value("pagefleet_webhook_endpoints_disabled_total") == 0
