"""What is counted of storage events, whichever program takes them in."""

from prometheus_client import Counter
from prometheus_client.registry import Collector

EVENTS = Counter(
    "pagefleet_storage_events",
    "Events of object stores, by what became of them: an outcome of docs/s3-events.md, "
    "`unreadable`, or `put_off` where the event comes again.",
    ["outcome"],
    registry=None,
)
GROUP: tuple[Collector, ...] = (EVENTS,)


def count_event(outcome: str) -> None:
    """Count an event, or a message that holds none."""
    EVENTS.labels(outcome).inc()
