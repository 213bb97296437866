"""Every metric that the code defines, and where documents and rules name some."""

import functools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.registry import Collector

from api import fleet_metrics, http_metrics, intake_metrics
from workers import program_metrics, sweep_metrics, webhook_metrics, work_metrics
from workers.tasks import worker_metrics

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
ALERT_TESTS = ROOT / "deploy" / "prometheus" / "alerts_test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "pagefleet.json"
RUNBOOK = ROOT / "docs" / "runbook.md"
_NAME = re.compile(r"\bpagefleet_[a-z0-9_]+")
_OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")
_UNITS = {"_seconds": "seconds", "_bytes": "bytes"}


@dataclass(frozen=True)
class MetricRow:
    """What docs/metrics.md says of a metric."""

    name: str
    type: str
    labels: tuple[str, ...]
    unit: str
    program: str
    meaning: str

    @property
    def cells(self) -> list[str]:
        labels = ", ".join(f"`{label}`" for label in self.labels)
        return [f"`{self.name}`", self.type, self.unit, labels, self.program, self.meaning]


@functools.cache
def catalog() -> dict[str, MetricRow]:
    """Return all metrics by the name that a query gives them."""
    groups: Iterable[tuple[str, Iterable[Collector]]] = (
        ("all", program_metrics.GROUP),
        ("API", http_metrics.GROUP),
        ("API, s3-events", intake_metrics.GROUP),
        ("worker", (*worker_metrics.GROUP, *work_metrics.GROUP)),
        ("reconcile", sweep_metrics.GROUP),
        ("webhooks", webhook_metrics.GROUP),
    )
    rows = [_row(program, metric) for program, group in groups for metric in group]
    rows += [
        _described(program, metric, labels)
        for program, collector, labels in (
            ("API", fleet_metrics.FleetMetrics(_no_transaction), fleet_metrics.LABELS),
            ("worker", worker_metrics.GpuMemoryMetrics(list), worker_metrics.MEMORY_LABELS),
        )
        for metric in collector.describe()
    ]
    return {row.name: row for row in rows}


def names_in(text: str) -> set[str]:
    """Return the metrics that a text or query names, histograms by their own name."""
    found = set(_NAME.findall(text))
    return {_OF_HISTOGRAMS.sub("", name) if _is_part(name) else name for name in found}


def alerts() -> list[dict[str, Any]]:
    """Return the rules of the alerts."""
    groups = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard_queries() -> list[str]:
    """Return every query of the dashboard."""
    return list(_queries(json.loads(DASHBOARD.read_text("utf-8"))))


def _queries(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "expr" and isinstance(value, str):
                yield value
            yield from _queries(value)
    elif isinstance(node, list):
        for value in node:
            yield from _queries(value)


def _is_part(name: str) -> bool:
    whole = _OF_HISTOGRAMS.sub("", name)
    return whole != name and catalog().get(whole, _NONE).type == "histogram"


def _row(program: str, metric: Any) -> MetricRow:
    (family,) = metric.describe()
    return _make(program, family, metric._labelnames)


def _described(program: str, family: Any, labels: Any) -> MetricRow:
    return _make(program, family, labels.get(family.name, ()))


def _make(program: str, family: Any, labels: Iterable[str]) -> MetricRow:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    unit = next((unit for end, unit in _UNITS.items() if family.name.endswith(end)), "")
    return MetricRow(name, family.type, tuple(labels), unit, program, family.documentation)


def _no_transaction() -> Any:
    raise AssertionError("describing asks nobody")


_NONE = MetricRow("", "", (), "", "", "")
