"""What the API counts of its requests."""

from prometheus_client import Counter, Histogram
from prometheus_client.registry import Collector

# Whatever else a client writes there would be a label of its own.
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

REQUESTS = Counter(
    "pagefleet_http_requests",
    "Requests, by the template of their route; `none`: no route has the address.",
    ["method", "route", "status"],
    registry=None,
)
SECONDS = Histogram(
    "pagefleet_http_request_seconds",
    "From the head of a request to the end of its answer, receiving an upload included.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
    registry=None,
)
GROUP: tuple[Collector, ...] = (REQUESTS, SECONDS)


def count_request(method: str, route: str | None, status: int, seconds: float) -> None:
    """Count a request that was answered, or broken off."""
    known = method if method in _METHODS else "other"
    REQUESTS.labels(known, route or "none", status).inc()
    SECONDS.labels(route or "none").observe(seconds)
