"""Metrics, alerts, dashboard, runbook and docs/metrics.md name the same things."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.guides import table_rows
from tests.support.metric_catalog import (
    ALERT_TESTS,
    ALERTS,
    DASHBOARD,
    RUNBOOK,
    MetricRow,
    alerts,
    catalog,
    dashboard_queries,
    names_in,
)
from tests.support.prometheus import require_program

ROWS = list(catalog().values())
NAMES = [row.name for row in ROWS]
RULES = alerts()
ALERT_NAMES = [rule["alert"] for rule in RULES]
WRITTEN = [row for row in table_rows("metrics.md") if row[0].startswith("`pagefleet_")]
# What a label may not hold: one series for each.
IDS = {"tenant", "document", "document_id", "batch", "batch_id", "chunk_id", "key", "key_id", "pid"}


def test_the_guide_lists_each_metric_once_and_no_other() -> None:
    assert sorted(row[0].strip("`") for row in WRITTEN) == sorted(NAMES)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_guide_says_of_a_metric_what_the_code_says(row: MetricRow) -> None:
    assert [each for each in WRITTEN if each[0].strip("`") == row.name] == [row.cells]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_metric_is_named_as_prometheus_asks_for_and_has_no_id_as_a_label(row: MetricRow) -> None:
    assert row.name.startswith("pagefleet_")
    assert row.name.endswith("_total") == (row.type == "counter")
    assert not set(row.labels) & IDS
    assert not re.search(r"_(ms|milliseconds|minutes|mb|mib|kb|percent)(_|$)", row.name)


def test_the_dashboard_names_metrics_of_the_code_alone() -> None:
    assert names_in("\n".join(dashboard_queries())) - set(NAMES) == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_is_on_the_dashboard(name: str) -> None:
    assert name in names_in("\n".join(dashboard_queries()))


def test_every_panel_says_what_it_shows() -> None:
    assert '"title": ""' not in DASHBOARD.read_text("utf-8")
    assert len(dashboard_queries()) > len(NAMES)


@pytest.mark.parametrize("path", [ALERTS, ALERT_TESTS, RUNBOOK], ids=lambda path: path.name)
def test_alerts_and_runbook_name_metrics_of_the_code_alone(path: Path) -> None:
    assert names_in(path.read_text("utf-8")) - set(NAMES) == set()


@pytest.mark.parametrize("rule", RULES, ids=ALERT_NAMES)
def test_an_alert_has_its_entry_in_the_runbook_and_links_to_it(rule: dict[str, Any]) -> None:
    headings = re.findall(r"^## (.+)$", RUNBOOK.read_text("utf-8"), re.MULTILINE)

    assert headings.count(rule["alert"]) == 1
    link = f"docs/runbook.md#{rule['alert'].lower()}"
    assert rule["annotations"]["runbook_url"] == link
    assert rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in {"critical", "warning"}


@pytest.mark.parametrize("name", ALERT_NAMES)
def test_an_entry_says_what_it_means_how_to_confirm_it_and_what_to_do(name: str) -> None:
    _, _, rest = RUNBOOK.read_text("utf-8").partition(f"\n## {name}\n")
    entry = rest.partition("\n## ")[0]

    parts = re.findall(
        r"^\*\*(What it means|How to confirm it|What to do)\.\*\*", entry, re.MULTILINE
    )
    assert parts == ["What it means", "How to confirm it", "What to do"]


def test_the_runbook_has_no_entry_without_an_alert() -> None:
    headings = re.findall(r"^## (Pagefleet.+)$", RUNBOOK.read_text("utf-8"), re.MULTILINE)

    assert sorted(headings) == sorted(ALERT_NAMES)


@pytest.mark.parametrize("name", ALERT_NAMES)
def test_an_alert_is_tested_to_fire_and_to_stay_silent(name: str) -> None:
    tests = yaml.safe_load(ALERT_TESTS.read_text("utf-8"))["tests"]
    expected = [
        bool(case["exp_alerts"])
        for test in tests
        for case in test["alert_rule_test"]
        if case["alertname"] == name
    ]

    assert set(expected) == {True, False}


def test_the_tests_of_the_alerts_hold() -> None:
    promtool = require_program("promtool")

    tested = subprocess.run(  # noqa: S603 - Prometheus' own program
        [promtool, "test", "rules", ALERT_TESTS.name],
        cwd=ALERT_TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_a_test_of_an_alert_can_fail(tmp_path: Path) -> None:
    promtool = require_program("promtool")
    shutil.copy(ALERTS, tmp_path)
    broken = ALERT_TESTS.read_text("utf-8").replace("91+0x20", "89+0x20")
    (tmp_path / ALERT_TESTS.name).write_text(broken, "utf-8")

    tested = subprocess.run(  # noqa: S603 - Prometheus' own program
        [promtool, "test", "rules", ALERT_TESTS.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert tested.returncode != 0
    assert "PagefleetGpuMemoryHigh" in tested.stdout + tested.stderr
