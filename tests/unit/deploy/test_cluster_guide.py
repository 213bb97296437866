"""The examples of docs/kubernetes.md do what they are there for."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands import ROOT
from tests.support.guide_blocks import blocks_of
from tests.support.manifests import (
    K8S,
    OVERLAYS,
    Workload,
    named,
    of_kind,
    overlay,
    render,
    workloads,
)

GUIDE = "docs/kubernetes.md"
TEXT = (ROOT / GUIDE).read_text("utf-8")
OWN, WITHOUT_KEDA = (
    yaml.safe_load(block.code) for block in blocks_of(GUIDE) if block.language == "yaml"
)


def rendered(folder: Path, *parts: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Render an overlay of one's own, put together of examples."""
    own = {key: value for part in parts for key, value in part.items()}
    for key in {"patches"} & own.keys():
        own[key] = [patch for part in parts for patch in part.get(key, [])]
    (base,) = OWN["resources"]
    assert base.startswith("../pagefleet/")
    checkout = os.path.relpath(ROOT, folder.resolve())
    own["resources"] = [base.replace("../pagefleet", checkout)]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(own), "utf-8")
    return render(folder)


def test_an_overlay_of_ones_own_names_ones_images_storage_and_prometheus(tmp_path: Path) -> None:
    resources = rendered(tmp_path, OWN)

    images = {container["image"] for each in workloads(resources) for container in each.containers}
    assert {image.partition("/")[0] for image in images} == {"registry.my-company.example"}
    api = Workload(named(resources, "Deployment", "api"), resources)
    settings = api.environment(api.main)
    assert settings["PAGEFLEET_S3_ENDPOINT_URL"] == "https://s3.my-company.example"
    assert settings["PAGEFLEET_REDIS_VISIBILITY_TIMEOUT_S"] == "3600"  # merged, not replaced
    spec = named(resources, "ScaledObject", "recognize")["spec"]
    assert (spec["maxReplicaCount"], "my-namespace" in str(spec["triggers"])) == (16, True)


def test_without_keda_one_says_how_many(tmp_path: Path) -> None:
    resources = rendered(tmp_path, {**OWN, "patches": []}, WITHOUT_KEDA)

    assert of_kind(resources, "ScaledObject") == []
    assert named(resources, "Deployment", "recognize")["spec"]["replicas"] == 3


def test_every_overlay_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| on ", TEXT, re.MULTILINE)

    assert sorted(rows) == OVERLAYS


def test_the_secrets_of_the_guide_are_those_that_pods_name() -> None:
    made = {
        name: set(re.findall(r"--from-file=([a-z-]+)=", line))
        for name, line in re.findall(r"create secret generic (\S+) (.*)", TEXT)
    }
    wanted: dict[str, set[str]] = {}
    for each in workloads(overlay("gpu")):
        for container in each.containers:
            for variable in container.get("env", []):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                if reference:
                    wanted.setdefault(reference["name"], set()).add(reference["key"])

    assert made == wanted


def test_the_labels_of_the_guide_are_those_of_the_policies() -> None:
    policies = of_kind(overlay("gpu"), "NetworkPolicy")
    asked = {
        f"{key}={value}"
        for found in re.findall(r"'namespaceSelector': \{'matchLabels': \{(.*?)\}", str(policies))
        for key, value in re.findall(r"'([^']+)': '([^']+)'", found)
        if key.startswith("pagefleet/")
    }

    assert asked == set(re.findall(r"`(pagefleet/(?!stage)\S+=true)`", TEXT))


@pytest.mark.parametrize("step", ["setup", "migrate", "workers", "api"])
def test_an_upgrade_applies_every_step_in_its_order(step: str) -> None:
    steps = re.findall(r"apply -k \"\$overlay\" -l pagefleet/stage=(\w+)", TEXT)

    assert steps == ["setup", "migrate", "workers", "api"]
    assert step in str(overlay("gpu"))


def test_the_folders_of_the_manifests_are_all_in_their_readme() -> None:
    readme = (K8S / "README.md").read_text("utf-8")
    components = {f"components/{path.name}" for path in (K8S / "components").iterdir()}
    folders = {f"{path.name}/" for path in K8S.iterdir() if path.is_dir()} - {"components/"}

    assert [each for each in sorted(components | folders) if f"`{each}`" not in readme] == []
    assert [name for name in OVERLAYS if f"`{name}`" not in readme] == []
