"""What every program counts, and how it hands out what it counts.

Metrics belong to no registry of their own: each program puts together what it counts, so that it
shows nothing that is another's. In a worker they lie in files that its processes share; see
``workers.metric_files``. docs/metrics.md has all of them.
"""

import platform
from collections.abc import Iterable
from importlib import metadata

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.registry import Collector

log = structlog.get_logger(__name__)

BUILD = Gauge(
    "pagefleet_build_info",
    "1, with the release and the Python that run.",
    ["program", "version", "python"],
    registry=None,
    multiprocess_mode="livemax",
)
STORAGE_ERRORS = Counter(
    "pagefleet_storage_errors",
    "Calls to the object storage that failed after all tries of the client; `bucket` is `own`, or "
    "`other` for users' buckets, `kind` is `unavailable`, `refused` or `corrupt`.",
    ["bucket", "kind"],
    registry=None,
)
GROUP: tuple[Collector, ...] = (BUILD, STORAGE_ERRORS)


def note_build(program: str) -> None:
    """Say which program of which release this process is."""
    # A series beside each counter that says since when it counts, which nobody asks for.
    disable_created_metrics()
    BUILD.labels(program, _version(), platform.python_version()).set(1)
    for kind in ("unavailable", "refused", "corrupt"):
        STORAGE_ERRORS.labels("own", kind).inc(0)  # so that the first one is an increase


def count_storage_error(bucket: str, kind: str) -> None:
    """Count a call to the object storage that failed; see ``storage.s3``."""
    STORAGE_ERRORS.labels(bucket, kind).inc()


def registry_of(collectors: Iterable[Collector]) -> CollectorRegistry:
    """Return what a program of one process shows: these, what all count, and itself."""
    registry = CollectorRegistry()
    for collector in (*GROUP, *collectors):
        registry.register(collector)
    ProcessCollector(registry=registry)
    return registry


def serve(registry: CollectorRegistry, *, host: str, port: int) -> None:
    """Answer ``GET /metrics`` in threads of this process, until it ends.

    A port that cannot be had is only logged: no work is given up for being watched, and whoever
    watches notices.

    Args:
        registry: what is shown.
        host: address to listen on.
        port: to listen on; 0: nothing is served.
    """
    if not port:
        return
    try:
        start_http_server(port, host, registry)
    except OSError as error:
        log.error("metrics are not served", host=host, port=port, reason=str(error))  # noqa: TRY400 - the reason says it all
        return
    log.info("metrics are served", host=host, port=port)


def _version() -> str:
    try:
        return metadata.version("pagefleet")
    except metadata.PackageNotFoundError:
        return "checkout"  # run from the source, as the scripts do
