"""What a worker shows: what its processes count, and what only the main one sees."""

from collections.abc import Callable, Iterator
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workers import devices, program_metrics
from workers.celeryconfig import RECOGNIZE_QUEUE
from workers.metric_files import MetricFiles, folder_of
from workers.settings import WorkerSettings

log = structlog.get_logger(__name__)

SLOTS = Gauge(
    "pagefleet_slots",
    "Slots that a worker has, ready or not, by each queue that it works on.",
    ["queue"],
    registry=None,
    multiprocess_mode="livesum",
)
GROUP: tuple[Collector, ...] = (SLOTS,)
_MEMORY_HELP = {
    "pagefleet_gpu_memory_used_bytes": "GPU memory that is in use, by whatever process; `gpu` "
    "counts the GPUs that this worker sees.",
    "pagefleet_gpu_memory_total_bytes": "GPU memory that there is.",
}
MEMORY_LABELS = dict.fromkeys(_MEMORY_HELP, ("gpu",))


class GpuMemoryMetrics(Collector):
    """Memory of the GPUs that this worker sees; asks the driver, and touches no GPU.

    Args:
        read: asks the driver.
    """

    def __init__(
        self, read: Callable[[], list[devices.GpuMemory]] = devices.memory_of_gpus
    ) -> None:
        self._read = read

    def describe(self) -> Iterator[Metric]:
        """Return the families without a sample."""
        return iter([_memory_family(name) for name in _MEMORY_HELP])

    def collect(self) -> Iterator[Metric]:
        """Return what the driver says now."""
        used, total = (_memory_family(name) for name in _MEMORY_HELP)
        for index, memory in enumerate(self._read()):
            used.add_metric([str(index)], memory.used_bytes)
            total.add_metric([str(index)], memory.total_bytes)
        return iter([used, total])


class WorkerMetrics:
    """The metrics of one worker, in its main process.

    Args:
        settings: of the worker.
        heartbeat_file: of the worker; what is counted lies beside it.
        slots: that it has.
    """

    def __init__(self, settings: WorkerSettings, heartbeat_file: Path, *, slots: int) -> None:
        self._settings = settings
        folder = folder_of(heartbeat_file)
        # Without the folder each process counts for itself, and nobody asks.
        self._files = MetricFiles(folder) if folder.is_dir() else None
        for queue in settings.worker_queues:
            SLOTS.labels(queue).set(slots)

    def serve(self) -> None:
        """Show them, where the settings say."""
        program_metrics.note_build("worker")
        registry = CollectorRegistry()
        if self._files is not None:
            registry.register(self._files)
        ProcessCollector(registry=registry)
        if RECOGNIZE_QUEUE in self._settings.worker_queues and self._settings.device != "cpu":
            registry.register(GpuMemoryMetrics())
        program_metrics.serve(
            registry, host=self._settings.metrics_host, port=self._settings.metrics_port
        )

    def bury_dead(self) -> None:
        """Let the gauges of slots that died go, and keep what they counted.

        What keeps it from that, as a full disk, is logged: no work is given up for being watched.
        """
        if self._files is None:
            return
        try:
            self._files.bury_dead()
        except (OSError, RuntimeError, ValueError):
            log.warning("metrics of dead slots not put together", exc_info=True)


def _memory_family(name: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _MEMORY_HELP[name], labels=MEMORY_LABELS[name])
