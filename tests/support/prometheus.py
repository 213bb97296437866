"""Prometheus itself, of Debian's package: what evaluates an alert here is what does in earnest."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.fleet import free_port, wait_for
from tests.support.metric_catalog import ALERTS
from tests.support.plain_http import NO_TLS

_START_LIMIT_S = 120.0


def require_program(name: str) -> str:
    """Return the path of ``promtool`` or ``prometheus``; skip on a laptop, fail where CI is set."""
    found = shutil.which(name)
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"CI has no {name}; .ci/run installs it")
    pytest.skip(f"no {name} here; it comes with Debian's package prometheus")


@dataclass(frozen=True)
class Prometheus:
    """A server that scrapes the programs of a test every two seconds, and evaluates our alerts.

    Their ``for`` is seconds where ours is minutes, so that a test sees them fire; what they ask for
    is as it is.
    """

    url: str

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series that an expression gives now."""
        answer = self._get("/api/v1/query", query=expression)
        return [(each["metric"], float(each["value"][1])) for each in answer["data"]["result"]]

    def firing(self) -> dict[str, dict[str, str]]:
        """Return the alerts that fire, with the labels of one of each."""
        answer = self._get("/api/v1/alerts")
        return {
            alert["labels"]["alertname"]: {**alert["labels"], **alert["annotations"]}
            for alert in answer["data"]["alerts"]
            if alert["state"] == "firing"
        }

    def wait_for_alert(self, name: str, *, timeout_s: float) -> dict[str, str]:
        """Return labels and annotations of an alert once it fires.

        Raises:
            AssertionError: it does not in time.
        """
        return wait_for(f"the alert {name}", lambda: self.firing().get(name), timeout_s=timeout_s)

    def wait_for_silence(self, name: str, *, timeout_s: float) -> None:
        """Return once an alert does not fire.

        Raises:
            AssertionError: it still does when the time is over.
        """
        wait_for(f"silence of {name}", lambda: name not in self.firing(), timeout_s=timeout_s)

    def wait_for_scrapes(self, targets: int) -> None:
        """Return once so many programs answer.

        Raises:
            AssertionError: fewer do.
        """

        def look() -> bool:
            return sum(value for _, value in self.query("up")) == targets

        wait_for(f"{targets} programs to be scraped", look, timeout_s=_START_LIMIT_S)

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        answer = httpx.get(
            f"{self.url}{path}", params=parameters, trust_env=False, verify=NO_TLS, timeout=30
        )
        answer.raise_for_status()
        read: dict[str, Any] = answer.json()
        return read


@contextmanager
def watching(ports: Sequence[int], folder: Path, *, waits_s: int = 2) -> Iterator[Prometheus]:
    """Run a Prometheus that watches programs at these ports.

    Args:
        ports: of the programs.
        folder: for its files; it is made.
        waits_s: what stands in place of every ``for``.
    """
    program = require_program("prometheus")
    folder.mkdir()
    (folder / "alerts.yml").write_text(yaml.safe_dump(_hasty(waits_s)), "utf-8")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(_configuration(ports)), "utf-8")
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - Prometheus' own program
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        wait_for("Prometheus", lambda: _is_ready(server, process, folder), timeout_s=_START_LIMIT_S)
        yield server
    finally:
        process.kill()
        process.wait()


def _is_ready(server: Prometheus, process: "subprocess.Popen[bytes]", folder: Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text("utf-8")
    try:
        return httpx.get(f"{server.url}/-/ready", trust_env=False, verify=NO_TLS).is_success
    except httpx.TransportError:
        return False


def _hasty(waits_s: int) -> Mapping[str, Any]:
    rules: dict[str, Any] = yaml.safe_load(ALERTS.read_text("utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = f"{waits_s}s"
    return rules


def _configuration(ports: Sequence[int]) -> Mapping[str, Any]:
    return {
        # A program on a busy machine may take more than a second to answer.
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [
            {
                "job_name": "pagefleet",
                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
            }
        ],
    }
