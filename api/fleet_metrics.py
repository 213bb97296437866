"""Metrics of the whole system, from Postgres; every process of the API shows the same."""

from collections.abc import Iterator
from functools import partial

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api.sparing_count import SparingCount
from db.engine import Transaction
from db.fleet_counts import FleetCounts, count_fleet

# Pages come and go by the minute; counting a million open documents takes a second or so, and may
# take one part in fifty of the database's time.
CACHE_S = 10.0
SHARE = 50.0
# Well before the alert PagefleetNotCounted, which comes after fifteen minutes.
LONGEST_S = 600.0
WINDOW_S = 300.0

_HELP = {
    "pagefleet_queue_pages": "Pages that wait, by what they wait for.",
    "pagefleet_queue_oldest_seconds": "For how long the oldest has waited, of each priority; 0 "
    "where nothing waits. Nothing is known of `assemble`, nor of documents that were started over "
    "before they were split.",
    "pagefleet_pages_in_flight": "Pages of chunks that workers hold.",
    "pagefleet_documents_open": "Documents that are not final, by state.",
    "pagefleet_documents_finished": "Documents that became final within the last 5 minutes, by "
    "state.",
    "pagefleet_pages_finished": "Pages of documents that became final within the last 5 minutes; "
    "`cached` ones are of those that are `ok`.",
    "pagefleet_documents_from_cache": "Documents that became final within the last 5 minutes and "
    "were served whole from an earlier one.",
    "pagefleet_webhooks_waiting": "Messages to endpoints that are to be sent, or sent again.",
    "pagefleet_webhooks_oldest_seconds": "Since what the oldest of these messages tells of; 0 "
    "without any.",
    "pagefleet_fleet_count_age_seconds": "Since these numbers were counted.",
}
LABELS = {
    "pagefleet_queue_pages": ("queue",),
    "pagefleet_queue_oldest_seconds": ("queue", "priority"),
    "pagefleet_documents_open": ("state",),
    "pagefleet_documents_finished": ("state",),
    "pagefleet_pages_finished": ("outcome",),
}


class FleetMetrics(Collector):
    """Counts sparingly; shows nothing until the first count, and an old one while it cannot."""

    def __init__(self, transaction: Transaction, *, cache_s: float = CACHE_S) -> None:
        self._counts = SparingCount(
            partial(_count, transaction), cache_s=cache_s, share=SHARE, longest_s=LONGEST_S
        )

    def describe(self) -> Iterator[Metric]:
        """Return the families without a sample; the database is not asked."""
        for name in _HELP:
            yield _family(name)

    def collect(self) -> Iterator[Metric]:
        """Return the families with what was counted last."""
        counted = self._counts.get()
        if counted is None:
            return
        families = {name: _family(name) for name in _HELP}
        for name, labels, value in _samples(counted.value):
            families[name].add_metric(labels, value)
        families["pagefleet_fleet_count_age_seconds"].add_metric((), counted.age_s)
        yield from families.values()


def _count(transaction: Transaction) -> FleetCounts:
    with transaction() as session:
        return count_fleet(session, window_s=WINDOW_S)


def _family(name: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _HELP[name], labels=LABELS.get(name, ()))


def _samples(counts: FleetCounts) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for work, queue in counts.queues.items():
        yield "pagefleet_queue_pages", (work.value,), queue.pages
        for priority, oldest_s in queue.oldest_s.items():
            labels = (work.value, priority.value)
            yield "pagefleet_queue_oldest_seconds", labels, oldest_s
    yield "pagefleet_pages_in_flight", (), counts.pages_in_flight
    for state, documents in counts.open_documents.items():
        yield "pagefleet_documents_open", (state.value,), documents
    for state, documents in counts.finished_documents.items():
        yield "pagefleet_documents_finished", (state.value,), documents
    for outcome, pages in counts.finished_pages.items():
        yield "pagefleet_pages_finished", (outcome,), pages
    yield "pagefleet_documents_from_cache", (), counts.documents_from_cache
    yield "pagefleet_webhooks_waiting", (), counts.webhooks_waiting
    yield "pagefleet_webhooks_oldest_seconds", (), counts.webhooks_oldest_s
