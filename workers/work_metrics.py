"""What the slots of a worker count of their work; all slots of a worker together.

A slot that dies leaves what it counted: it lies in a file (``workers.metric_files``).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

READY_SLOTS = Gauge(
    "pagefleet_ready_slots",
    "Slots that have loaded what they need, by each queue that they work on.",
    ["queue"],
    registry=None,
    multiprocess_mode="livesum",
)
MODEL = Gauge(
    "pagefleet_model_info",
    "1, with the models that slots read with and the device.",
    ["model_version", "device"],
    registry=None,
    multiprocess_mode="livemax",
)
SLOTS_ENDED = Counter(
    "pagefleet_slots_ended",
    "Slots that ended themselves: `poisoned` (the runtime cannot be trusted any more), `hung` (an "
    "inference took longer than `PAGEFLEET_INFERENCE_TIMEOUT_S`) or `not_started`.",
    ["reason"],
    registry=None,
)
FAILURES = Counter(
    "pagefleet_work_failures",
    "Attempts at a split, a chunk, an assembly or an export that did not come to their end, by the "
    "category of their error (ARCHITECTURE.md, Errors).",
    ["category"],
    registry=None,
)
PAGES = Counter(
    "pagefleet_pages",
    "Pages that were published, by outcome (`ok` or `failed`) and route; `none`: it failed before "
    "it had one.",
    ["outcome", "route"],
    registry=None,
)
PAGE_SECONDS = Histogram(
    "pagefleet_page_seconds",
    "Time that a page took, all stages together, by its route.",
    ["route"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120),
    registry=None,
)
STAGE_SECONDS = Histogram(
    "pagefleet_page_stage_seconds",
    "Time that a page took in one stage: `render`, `detect` or `recognize`.",
    ["stage"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    registry=None,
)
CROPS = Counter(
    "pagefleet_crops",
    "Text lines that were `found` on pages, and those of them that were `kept` to be recognized.",
    ["what"],
    registry=None,
)
TRUNCATED_PAGES = Counter(
    "pagefleet_truncated_pages",
    "Pages with more text lines than `PAGEFLEET_MAX_CROPS_PER_PAGE`.",
    registry=None,
)
PAGE_CACHE = Counter(
    "pagefleet_page_cache_lookups",
    "Pages that were looked for among earlier ones, by outcome: `hit` or `miss`.",
    ["outcome"],
    registry=None,
)
MINIBATCH_INPUTS = Histogram(
    "pagefleet_minibatch_inputs",
    "Text lines that went through the recognizer together; on a CPU always 1.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
    registry=None,
)
MINIBATCH_COLUMNS = Counter(
    "pagefleet_minibatch_pixel_columns",
    "Pixel columns that the recognizer looked through: of `text`, and of `padding` beside and "
    "below it.",
    ["what"],
    registry=None,
)
OUT_OF_MEMORY = Counter(
    "pagefleet_inference_out_of_memory",
    "Inferences that a device had no memory for. Each is tried again with less at a time.",
    ["device"],
    registry=None,
)
GROUP: tuple[Collector, ...] = (
    READY_SLOTS,
    MODEL,
    SLOTS_ENDED,
    FAILURES,
    PAGES,
    PAGE_SECONDS,
    STAGE_SECONDS,
    CROPS,
    TRUNCATED_PAGES,
    PAGE_CACHE,
    MINIBATCH_INPUTS,
    MINIBATCH_COLUMNS,
    OUT_OF_MEMORY,
)

_REASONS = ("poisoned", "hung", "not_started")


def note_ready(queues: Iterable[str]) -> None:
    """Say that this slot takes work of these queues."""
    for queue in queues:
        READY_SLOTS.labels(queue).set(1)
    for reason in _REASONS:
        SLOTS_ENDED.labels(reason).inc(0)  # so that the first one is an increase


def note_model(model_version: str, device: str) -> None:
    """Say what this slot reads with."""
    MODEL.labels(model_version, device).set(1)
    OUT_OF_MEMORY.labels(device).inc(0)


def count_ended_slot(reason: str) -> None:
    """Count this slot, which ends itself now."""
    SLOTS_ENDED.labels(reason).inc()


def count_failure(category: str) -> None:
    """Count an attempt that did not come to its end."""
    FAILURES.labels(category).inc()


def count_page_lookup(*, is_hit: bool) -> None:
    """Count a page that was looked for among earlier ones."""
    PAGE_CACHE.labels("hit" if is_hit else "miss").inc()


def count_page(outcome: str, values: Mapping[str, Any]) -> None:
    """Count a page that was published.

    Args:
        outcome: ``ok`` or ``failed``.
        values: what the ledger keeps of it.
    """
    route = str(values.get("route") or "none")
    PAGES.labels(outcome, route).inc()
    CROPS.labels("found").inc(values.get("crops_found") or 0)
    CROPS.labels("kept").inc(values.get("crops_kept") or 0)
    TRUNCATED_PAGES.inc(bool(values.get("truncated")))
    seconds: Mapping[str, float] = values.get("durations") or {}
    if seconds:
        PAGE_SECONDS.labels(route).observe(sum(seconds.values()))
    for stage, stage_s in seconds.items():
        STAGE_SECONDS.labels(stage).observe(stage_s)


class EngineMetrics:
    """Counts what an engine tells; see ``workers.ocr.engine_observer``.

    Args:
        device: on which it runs.
    """

    def __init__(self, device: str) -> None:
        self._device = device

    def minibatch_read(self, *, inputs: int, columns_px: int, padded_columns_px: int) -> None:
        MINIBATCH_INPUTS.observe(inputs)
        MINIBATCH_COLUMNS.labels("text").inc(columns_px)
        MINIBATCH_COLUMNS.labels("padding").inc(padded_columns_px - columns_px)

    def ran_out_of_memory(self) -> None:
        OUT_OF_MEMORY.labels(self._device).inc()

    def hung(self) -> None:
        count_ended_slot("hung")
