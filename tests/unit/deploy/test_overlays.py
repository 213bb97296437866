"""What each overlay claims: GPUs, scaling, disruption, roles."""

import re
from typing import Any

import pytest

from api.fleet_metrics import LABELS
from db.due_rows import Work
from tests.support.commands import ROOT
from tests.support.manifests import (
    K8S,
    OVERLAYS,
    Workload,
    named,
    of_kind,
    overlay,
    render,
    selects,
    workloads,
)

GPU = "nvidia.com/gpu"
# What stands for one GPU, or for a part of one, in each overlay; the CPU's has none.
GPU_RESOURCES = {
    "cpu": None,
    "gpu": GPU,
    "aws": GPU,
    "spot": GPU,
    "gpu-shared": "nvidia.com/mig-1g.10gb",
    "gpu-shared-time-slicing": "nvidia.com/gpu.shared",
}
SPOT_NOTICE_S = 30
GAUGE = "pagefleet_queue_pages"
QUERY = f'sum(max by (queue) ({GAUGE}{{queue=~"{Work.SPLIT}|{Work.RECOGNIZE}"}}))'


def recognize(name: str) -> Workload:
    (found,) = (each for each in workloads(overlay(name)) if each.name == "recognize")
    return found


def test_every_overlay_is_looked_at() -> None:
    assert set(OVERLAYS) == set(GPU_RESOURCES)


@pytest.mark.parametrize("name", OVERLAYS)
def test_a_pod_that_reads_has_the_device_that_the_overlay_says(name: str) -> None:
    pod = recognize(name)
    limits = pod.main["resources"]["limits"]
    requests = pod.main["resources"]["requests"]

    wanted = {} if GPU_RESOURCES[name] is None else {GPU_RESOURCES[name]: 1}
    assert {each: limits[each] for each in limits if "nvidia" in each} == wanted
    assert {each: requests[each] for each in requests if "nvidia" in each} == wanted
    device = pod.environment(pod.main)["PAGEFLEET_DEVICE"]
    assert device == ("cuda" if wanted else "cpu")
    assert pod.main["image"].split(":")[0].endswith("gpu" if wanted else "cpu")
    # Slots share the cores of the limit; without one each would take those of the whole node.
    assert "cpu" in limits


@pytest.mark.parametrize("name", OVERLAYS)
def test_no_other_pod_takes_a_gpu(name: str) -> None:
    others = [each for each in workloads(overlay(name)) if each.name != "recognize"]

    assert not any(
        "nvidia" in resource
        for each in others
        for container in each.containers
        for resource in container["resources"]["limits"]
    )


@pytest.mark.parametrize("name", [name for name in OVERLAYS if GPU_RESOURCES[name]])
def test_a_pool_of_gpus_is_rolled_out_without_a_spare_one(name: str) -> None:
    strategy = recognize(name).spec["strategy"]["rollingUpdate"]

    assert strategy == {"maxSurge": 0, "maxUnavailable": 1}


@pytest.mark.parametrize("name", ["gpu-shared", "gpu-shared-time-slicing"])
def test_pods_that_share_a_gpu_say_what_memory_is_theirs_and_how_they_are_kept_apart(
    name: str,
) -> None:
    pod = recognize(name)

    assert int(pod.environment(pod.main)["PAGEFLEET_GPU_MEMORY_BYTES"]) > 0
    isolation = {"gpu-shared": "mig", "gpu-shared-time-slicing": "none"}
    assert pod.labels["pagefleet/gpu-isolation"] == isolation[name]


def test_a_spot_worker_gives_its_work_back_within_the_notice() -> None:
    pod = recognize("spot")

    soft_s = float(pod.environment(pod.main)["PAGEFLEET_SOFT_SHUTDOWN_S"])
    assert soft_s + 16 <= SPOT_NOTICE_S
    affinity = pod.pod["affinity"]["nodeAffinity"]
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"gpu", "gke-spot"} <= {each["key"].split("/")[1] for each in pod.pod["tolerations"]}


def test_on_aws_the_role_opens_the_storage_and_no_key_does() -> None:
    resources = overlay("aws")
    role = named(resources, "ServiceAccount", "storage")["metadata"]["annotations"]

    assert role["eks.amazonaws.com/role-arn"].startswith("arn:aws:iam::")
    for each in workloads(resources):
        settings = each.environment(each.main)
        assert not any("S3_ACCESS_KEY_ID" in setting or "SECRET" in setting for setting in settings)
        assert not settings.get("PAGEFLEET_S3_ENDPOINT_URL")
        uses_storage = "pagefleet/reaches-storage" in each.labels
        assert (each.pod["serviceAccountName"] == "storage") == uses_storage


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_deployment_has_one_disruption_budget_that_lets_nodes_go(name: str) -> None:
    budgets = of_kind(overlay(name), "PodDisruptionBudget")
    deployments = [each for each in workloads(overlay(name)) if each.kind == "Deployment"]

    for each in deployments:
        (budget,) = (
            one["spec"] for one in budgets if selects(one["spec"]["selector"], each.labels)
        )
        assert budget["maxUnavailable"] == 1, each.name
        assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow", each.name
    assert len(budgets) == len(deployments)


@pytest.mark.parametrize("name", OVERLAYS)
def test_who_is_scaled_has_no_number_of_its_own_and_who_is_not_has_one(name: str) -> None:
    resources = overlay(name)
    scalers = of_kind(resources, "HorizontalPodAutoscaler", "ScaledObject")
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in scalers}
    deployments = [each for each in workloads(resources) if each.kind == "Deployment"]

    assert scaled == {"api", "recognize"}
    assert {each.name for each in deployments if "replicas" not in each.spec} == scaled
    assert named(resources, "Deployment", "reconcile")["spec"]["replicas"] == 2


@pytest.mark.parametrize("name", OVERLAYS)
def test_workers_are_scaled_by_the_gauge_of_the_queue_that_they_read(name: str) -> None:
    spec = named(overlay(name), "ScaledObject", "recognize")["spec"]
    (trigger,) = spec["triggers"]

    assert trigger["metadata"]["query"] == QUERY
    assert spec["minReplicaCount"] <= spec["fallback"]["replicas"] <= spec["maxReplicaCount"]
    slots = int(recognize(name).environment(recognize(name).main)["PAGEFLEET_SLOTS"])
    limit = int(recognize(name).environment(recognize(name).main)["PAGEFLEET_DISPATCH_QUEUE_LIMIT"])
    # docs/cli.md: four messages for each slot, else slots of a large fleet stand idle.
    assert limit >= 4 * slots * spec["maxReplicaCount"]


def test_the_gauge_is_one_that_the_api_shows_for_each_queue() -> None:
    assert LABELS[GAUGE] == ("queue",)
    assert QUERY in (ROOT / "docs" / "kubernetes.md").read_text("utf-8")


def test_the_scaler_follows_from_the_pace_that_was_measured() -> None:
    """As docs/capacity.md reckons it: what a pod reads in five minutes, and a little more."""
    guide = (ROOT / "docs" / "capacity.md").read_text("utf-8")
    (pace,) = re.findall(r"\| scans, through the whole fleet \|.*\| ([0-9.]+) \|\n", guide)
    spec = named(overlay("cpu"), "ScaledObject", "recognize")["spec"]
    threshold = int(spec["triggers"][0]["metadata"]["threshold"])
    slots = int(recognize("cpu").environment(recognize("cpu").main)["PAGEFLEET_SLOTS"])

    assert threshold == pytest.approx(float(pace) * slots * 300, rel=0.2)
    assert f'`threshold: "{threshold}"`' in guide
    assert f"`maxReplicaCount: {spec['maxReplicaCount']}`" in guide


@pytest.mark.parametrize("name", OVERLAYS)
def test_everything_belongs_to_a_step_of_an_upgrade(name: str) -> None:
    steps: dict[str, set[str]] = {}
    for each in overlay(name):
        step = each["metadata"]["labels"]["pagefleet/stage"]
        steps.setdefault(step, set()).add(each["kind"])

    assert steps.keys() == {"setup", "migrate", "workers", "api"}
    assert steps["migrate"] == {"Job"}
    assert "Deployment" not in steps["setup"]
    assert (
        named(overlay(name), "Deployment", "api")["metadata"]["labels"]["pagefleet/stage"] == "api"
    )


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_namespace_refuses_what_is_not_restricted(name: str) -> None:
    namespace = named(overlay(name), "Namespace", "pagefleet")["metadata"]

    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert {each["metadata"].get("namespace", "pagefleet") for each in overlay(name)} == {
        "pagefleet"
    }


def test_the_volume_of_models_is_the_one_that_pods_mount() -> None:
    claims = of_kind(render(K8S / "models"), "PersistentVolumeClaim")

    mounted: list[dict[str, Any]] = [
        volume["persistentVolumeClaim"]
        for volume in recognize("cpu").pod["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert mounted == [{"claimName": claims[0]["metadata"]["name"], "readOnly": True}]
