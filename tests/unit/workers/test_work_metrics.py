"""What a slot counts, as it is shown."""

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest

from tests.support.scraped import Scraped, parse
from workers import work_metrics
from workers.work_metrics import EngineMetrics


def shown() -> Scraped:
    registry = CollectorRegistry()
    for metric in work_metrics.GROUP:
        registry.register(metric)
    return parse(generate_latest(registry).decode())


def grown(before: Scraped, name: str, **labels: str) -> float:
    return (shown().find(name, **labels) or 0) - (before.find(name, **labels) or 0)


def test_a_page_counts_with_its_route_lines_and_seconds() -> None:
    before = shown()

    work_metrics.count_page(
        "ok",
        {
            "route": "mixed",
            "crops_found": 2_500,
            "crops_kept": 2_000,
            "truncated": True,
            "durations": {"render": 0.5, "detect": 1.5, "recognize": 6.0},
        },
    )

    assert grown(before, "pagefleet_pages_total", outcome="ok", route="mixed") == 1
    assert grown(before, "pagefleet_crops_total", what="found") == 2_500
    assert grown(before, "pagefleet_crops_total", what="kept") == 2_000
    assert grown(before, "pagefleet_truncated_pages_total") == 1
    assert grown(before, "pagefleet_page_seconds_sum", route="mixed") == 8.0
    assert grown(before, "pagefleet_page_stage_seconds_sum", stage="recognize") == 6.0


def test_a_page_that_failed_counts_without_route_and_seconds() -> None:
    before = shown()

    work_metrics.count_page("failed", {"error_code": "page_timeout"})

    assert grown(before, "pagefleet_pages_total", outcome="failed", route="none") == 1
    assert grown(before, "pagefleet_page_seconds_count") == 0


def test_padding_is_what_a_minibatch_has_beside_its_text() -> None:
    before = shown()

    EngineMetrics("cuda").minibatch_read(inputs=3, columns_px=700, padded_columns_px=1_280)

    assert grown(before, "pagefleet_minibatch_inputs_sum") == 3
    assert grown(before, "pagefleet_minibatch_pixel_columns_total", what="text") == 700
    assert grown(before, "pagefleet_minibatch_pixel_columns_total", what="padding") == 580


def test_memory_that_ran_out_counts_under_its_device() -> None:
    before = shown()

    EngineMetrics("cuda").ran_out_of_memory()

    assert grown(before, "pagefleet_inference_out_of_memory_total", device="cuda") == 1


def test_a_slot_says_which_queues_it_works_on_and_begins_its_counts_at_zero() -> None:
    work_metrics.note_ready(["split", "assemble"])

    scraped = shown()
    assert scraped.value("pagefleet_ready_slots", queue="split") == 1
    assert scraped.value("pagefleet_ready_slots", queue="assemble") == 1
    assert scraped.find("pagefleet_slots_ended_total", reason="poisoned") is not None


def test_numbers_of_numpy_count_too() -> None:
    before = shown()

    work_metrics.count_page("ok", {"route": "ocr", "crops_found": np.int64(4), "crops_kept": 4})

    assert grown(before, "pagefleet_crops_total", what="found") == 4
