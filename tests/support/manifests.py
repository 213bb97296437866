"""The manifests of ``deploy/k8s`` as a cluster would get them, rendered by kubectl."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands import ROOT
from tests.support.deployed_programs import secret_value

K8S = ROOT / "deploy" / "k8s"
OVERLAYS = sorted(path.name for path in (K8S / "overlays").iterdir())
_RENDER_TIMEOUT_S = 200

Resource = dict[str, Any]


def require_program(name: str) -> str:
    """Return a program of requirements/dev.txt; without it skip on a laptop, fail under ``CI``."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which(name, path=path)
    if found is None:
        reason = f"no {name}; scripts/lint installs it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(f"SKIPPED, NOT TESTED: {reason}")
    return found


@functools.cache
def render(folder: Path) -> tuple[Resource, ...]:
    """Return the resources of a kustomization."""
    ended = subprocess.run(  # noqa: S603 - a program of our own environment
        [require_program("kubectl"), "kustomize", str(folder)],
        check=True,
        capture_output=True,
        timeout=_RENDER_TIMEOUT_S,
    )
    return tuple(each for each in yaml.safe_load_all(ended.stdout) if each)


def overlay(name: str) -> tuple[Resource, ...]:
    return render(K8S / "overlays" / name)


def of_kind(resources: tuple[Resource, ...], *kinds: str) -> list[Resource]:
    return [each for each in resources if each["kind"] in kinds]


def named(resources: tuple[Resource, ...], kind: str, name: str) -> Resource:
    (found,) = (each for each in of_kind(resources, kind) if each["metadata"]["name"] == name)
    return found


@dataclass(frozen=True)
class Workload:
    """A Deployment or Job, and the resources that it lies among."""

    resource: Resource
    resources: tuple[Resource, ...]

    @property
    def name(self) -> str:
        return str(self.resource["metadata"]["name"])

    @property
    def kind(self) -> str:
        return str(self.resource["kind"])

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.resource["spec"]
        return spec

    @property
    def pod(self) -> dict[str, Any]:
        pod: dict[str, Any] = self.spec["template"]["spec"]
        return pod

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.spec["template"]["metadata"]["labels"]
        return labels

    @property
    def containers(self) -> list[dict[str, Any]]:
        return [*self.pod.get("initContainers", []), *self.pod["containers"]]

    @property
    def main(self) -> dict[str, Any]:
        (container,) = self.pod["containers"]
        return dict(container)

    def environment(self, container: dict[str, Any]) -> dict[str, str]:
        """Return the variables that a container gets; secrets are stood in for."""
        variables = {}
        for source in container.get("envFrom", []):
            variables.update(self._settings(source["configMapRef"]["name"]))
        for variable in container.get("env", []):
            variables[variable["name"]] = self._value(variable)
        return variables

    def secrets(self, container: dict[str, Any]) -> dict[str, str]:
        """Return the Secret that each variable comes from, of those that come from one."""
        return {
            variable["name"]: variable["valueFrom"]["secretKeyRef"]["name"]
            for variable in container.get("env", [])
            if "secretKeyRef" in variable.get("valueFrom", {})
        }

    def _value(self, variable: dict[str, Any]) -> str:
        if "value" in variable:
            return str(variable["value"])
        source = variable["valueFrom"]
        if "configMapKeyRef" in source:
            reference = source["configMapKeyRef"]
            return self._settings(reference["name"])[reference["key"]]
        assert "secretKeyRef" in source
        return secret_value(variable["name"])

    def _settings(self, name: str) -> dict[str, str]:
        settings: dict[str, str] = named(self.resources, "ConfigMap", name)["data"]
        return settings


def workloads(resources: tuple[Resource, ...]) -> list[Workload]:
    return [Workload(each, resources) for each in of_kind(resources, "Deployment", "Job")]


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Tell whether a selector of labels, empty for all, selects a pod."""
    assert selector.keys() <= {"matchLabels"}
    return selector.get("matchLabels", {}).items() <= labels.items()


def policies_of(workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield the specifications of the network policies that hold for a workload's pods."""
    for policy in of_kind(workload.resources, "NetworkPolicy"):
        if selects(policy["spec"]["podSelector"], workload.labels):
            yield policy["spec"]
