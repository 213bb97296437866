"""What ``pagefleet webhooks`` counts."""

from prometheus_client import Counter
from prometheus_client.registry import Collector

DELIVERIES = Counter(
    "pagefleet_webhook_deliveries",
    "Tries to deliver a message, by outcome: `delivered` or `failed`.",
    ["outcome"],
    registry=None,
)
DISABLED = Counter(
    "pagefleet_webhook_endpoints_disabled",
    "Endpoints that were disabled because they only failed.",
    registry=None,
)
GROUP: tuple[Collector, ...] = (DELIVERIES, DISABLED)


def count_delivery(outcome: str) -> None:
    """Count a try that was recorded."""
    DELIVERIES.labels(outcome).inc()


def count_disabled() -> None:
    """Count an endpoint that was disabled."""
    DISABLED.inc()
