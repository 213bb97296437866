"""What checks the manifests refuses what a cluster would refuse, or would pass over in silence."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.commands import ROOT
from tests.support.manifests import named, overlay, require_program

TIMEOUT_S = 250
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: one, namespace: pagefleet}
spec:
  %s: 1
  selector: {matchLabels: {app: one}}
"""
UNKNOWN = """
apiVersion: example.com/v1
kind: Wish
metadata: {name: one, namespace: pagefleet}
"""


@pytest.fixture(autouse=True)
def _programs() -> None:
    for name in ("kubectl", "kubernetes-validate", "check-jsonschema"):
        require_program(name)


def check(folder: Path, manifest: str) -> "subprocess.CompletedProcess[str]":
    """Check a manifest as scripts/lint checks those of the project."""
    (folder / "one.yaml").write_text(manifest, "utf-8")
    (folder / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [one.yaml]\n",
        "utf-8",
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(  # noqa: S603 - a script of ours
        [str(ROOT / "scripts" / "check-manifests"), str(folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "PATH": path},
    )


def budget(field: str, more: str = "") -> str:
    return BUDGET % field + more


def scaled_object(field: str) -> str:
    scaled = named(overlay("cpu"), "ScaledObject", "recognize")
    spec = {**scaled["spec"], field: scaled["spec"]["maxReplicaCount"]}
    return yaml.safe_dump({**scaled, "spec": spec})


@pytest.mark.parametrize(
    "manifest",
    [partial(budget, "maxUnavailable"), partial(scaled_object, "maxReplicaCount")],
    ids=["core", "keda"],
)
def test_a_manifest_whose_fields_exist_is_taken(
    tmp_path: Path, manifest: Callable[[], str]
) -> None:
    checked = check(tmp_path, manifest())

    assert (checked.returncode, checked.stdout) == (0, f"checked {tmp_path}\n"), checked.stderr


@pytest.mark.parametrize(
    ("manifest", "named_in"),
    [
        (partial(budget, "maxUnavailible"), "maxUnavailible"),
        (partial(budget, "maxUnavailable", "  minAvailable: {}\n"), "minAvailable"),
        (lambda: UNKNOWN, "Wish"),
        (partial(scaled_object, "maxReplicaCnt"), "maxReplicaCnt"),
    ],
    ids=["misspelt", "of another type", "of an unknown kind", "misspelt for KEDA"],
)
def test_a_manifest_that_is_wrong_is_refused_by_name(
    tmp_path: Path, manifest: Callable[[], str], named_in: str
) -> None:
    checked = check(tmp_path, manifest())

    assert checked.returncode == 1
    assert named_in in checked.stdout + checked.stderr
