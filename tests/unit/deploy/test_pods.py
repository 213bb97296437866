"""Every pod of every overlay: what it may, what it gets, how it starts and ends."""

from typing import Any

import pytest

from tests.support.deployed_programs import (
    PROGRAMS,
    parse_command,
    read_as,
    secret_settings,
)
from tests.support.manifests import (
    K8S,
    OVERLAYS,
    Workload,
    of_kind,
    overlay,
    render,
    selects,
    workloads,
)
from workers.celeryconfig import QUEUES
from workers.tasks.worker_end import CHILDREN_END_S, ORDERLY_END_S

# What a cluster has to hold, whatever it reads pages on (deploy/k8s/README.md).
PARTS = {
    *("migrate", "api", "split", "assemble", "recognize", "export"),
    *("reconcile", "webhooks", "flower"),
}
# The Secrets of each: what a program does not use it does not get.
SERVERS = {"database", "broker", "storage"}
SECRETS = {
    **dict.fromkeys(("api", "split", "assemble", "recognize", "export", "reconcile"), SERVERS),
    "s3-events": {"database", "storage"},
    "webhooks": {"database"},
    "migrate": {"database"},
    "flower": {"broker", "flower"},
    "fetch-models": set(),
}
# Ends of programs that no setting bounds: `_END_LIMIT_S` of their modules.
END_LIMITS_S = {"reconcile": 20, "webhooks": 20, "s3-events": 25, "flower": 10}


@pytest.fixture(params=[*OVERLAYS, "models"])
def pods(request: pytest.FixtureRequest) -> list[Workload]:
    """The workloads of an overlay, or of what fills the volume of models."""
    folder = K8S / "models" if request.param == "models" else K8S / "overlays" / request.param
    return workloads(render(folder))


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_has_every_part(name: str) -> None:
    parts = {each.name for each in workloads(overlay(name))}

    assert parts == PARTS | ({"s3-events"} if name == "aws" else set())


def test_a_deployment_selects_its_own_pods_and_no_others(pods: list[Workload]) -> None:
    for each in pods:
        if each.kind == "Deployment":
            chosen = [one.name for one in pods if selects(each.spec["selector"], one.labels)]
            assert chosen == [each.name]


def test_a_pod_is_restricted(pods: list[Workload]) -> None:
    for each in pods:
        security = each.pod["securityContext"]
        assert security["runAsNonRoot"] is True, each.name
        assert security["runAsUser"] > 0, each.name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, each.name
        assert each.pod["automountServiceAccountToken"] is False, each.name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & each.pod.keys(), each.name
        kinds = {kind for volume in each.pod["volumes"] for kind in volume if kind != "name"}
        assert kinds <= {"emptyDir", "persistentVolumeClaim"}, each.name


def test_a_container_may_nothing_and_writes_into_volumes_alone(pods: list[Workload]) -> None:
    for each in pods:
        for container in each.containers:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, each.name


def test_no_service_brings_variables_that_are_no_settings(pods: list[Workload]) -> None:
    assert [each.name for each in pods if each.pod["enableServiceLinks"] is not False] == []


def test_every_container_says_how_much_it_takes(pods: list[Workload]) -> None:
    for each in pods:
        for container in each.containers:
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), each.name
            assert "memory" in container["resources"]["limits"], each.name


def test_an_image_has_the_version_of_the_project(pods: list[Workload], version: str) -> None:
    images = {container["image"] for each in pods for container in each.containers}

    assert {image.rpartition(":")[2] for image in images} == {version}


def test_what_is_started_is_a_command_of_the_program(pods: list[Workload]) -> None:
    for each in pods:
        for container in each.containers:
            assert "command" not in container, each.name  # the entry point of the image
            options = parse_command(container["args"])
            if container["args"][0] == "worker":
                assert set(options["queues"].split(",")) <= set(QUEUES)


@pytest.mark.parametrize("name", OVERLAYS)
def test_each_queue_has_workers_of_its_own(name: str) -> None:
    asked = [
        parse_command(each.main["args"])["queues"]
        for each in workloads(overlay(name))
        if each.main["args"][0] == "worker"
    ]

    assert sorted(asked) == sorted(QUEUES)


def test_a_program_starts_with_the_settings_that_it_gets(pods: list[Workload]) -> None:
    for each in pods:
        for container in each.containers:
            read_as(container["args"][0], each.environment(container))


def test_a_program_gets_no_setting_that_it_does_not_read(pods: list[Workload]) -> None:
    for each in pods:
        for container in each.containers:
            unread = each.environment(container).keys() - PROGRAMS[container["args"][0]].names
            assert unread == set(), each.name


def test_a_program_gets_the_secrets_that_it_uses_and_no_other(
    pods: list[Workload], request: pytest.FixtureRequest
) -> None:
    role = {"storage"} if "aws" in request.node.callspec.id else set()  # AWS knows it by its role
    for each in pods:
        assert set(each.secrets(each.main).values()) == SECRETS[each.name] - role, each.name
        assert all(not each.secrets(other) for other in each.pod.get("initContainers", []))


def test_no_secret_stands_in_a_manifest(pods: list[Workload]) -> None:
    """What has to have a value, and is not used, names a place that cannot be."""
    secret = secret_settings()
    for each in pods:
        assert of_kind(each.resources, "Secret") == []
        for settings in of_kind(each.resources, "ConfigMap"):
            assert not settings["data"].keys() & secret
        for container in each.containers:
            plain = [one for one in container.get("env", []) if "value" in one]
            shown = [one["value"] for one in plain if one["name"] in secret]
            assert all("@" not in value and ".invalid/" in value for value in shown), each.name


def test_a_worker_may_end_its_tasks_before_it_is_killed(pods: list[Workload]) -> None:
    workers = [each for each in pods if each.main["args"][0] == "worker"]
    for each in workers:
        settings = each.environment(each.main)
        grace_s = each.pod["terminationGracePeriodSeconds"]
        soft_s = float(settings["PAGEFLEET_SOFT_SHUTDOWN_S"])
        assert grace_s > int(settings["PAGEFLEET_TASK_HARD_LIMIT_S"]), each.name
        assert grace_s > soft_s + ORDERLY_END_S + CHILDREN_END_S, each.name


def test_every_other_program_may_end_in_order(pods: list[Workload]) -> None:
    others = [
        each for each in pods if each.kind == "Deployment" and each.main["args"][0] != "worker"
    ]
    for each in others:
        settings = each.environment(each.main)
        pause = each.main.get("lifecycle", {}).get("preStop", {}).get("sleep", {"seconds": 0})
        own_s = END_LIMITS_S.get(each.name) or int(settings["PAGEFLEET_API_SHUTDOWN_S"])
        assert each.pod["terminationGracePeriodSeconds"] > own_s + pause["seconds"], each.name


def test_probes_ask_the_heartbeat_file_or_an_address_that_needs_no_key(
    pods: list[Workload],
) -> None:
    for each in pods:
        container = each.main
        probes = {name: container.get(f"{name}Probe") for name in ("startup", "liveness")}
        match container["args"][0]:
            case "migrate" | "models":
                assert not any(probes.values())
            case "api":
                assert {one["httpGet"]["path"] for one in probes.values()} == {"/livez"}
                assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
            case "flower":
                assert {one["httpGet"]["path"] for one in probes.values()} == {"/healthcheck"}
            case command:
                start = "started" if command == "worker" else "alive"
                assert probes["startup"]["exec"]["command"] == ["pagefleet-probe", start]
                assert probes["liveness"]["exec"]["command"] == ["pagefleet-probe", "alive"]
                assert writes_into(each, each.environment(container)["PAGEFLEET_HEARTBEAT_FILE"])


def test_what_a_program_writes_lies_in_a_volume(pods: list[Workload]) -> None:
    for each in pods:
        home = each.environment(each.main).get("PAGEFLEET_HOME")
        assert home is None or writes_into(each, home), each.name
        assert writes_into(each, "/tmp"), each.name  # noqa: S108 - of a pod


def writes_into(workload: Workload, path: str) -> bool:
    """Tell whether a path lies on a volume that a workload's program may write into."""
    mounts = [each for each in workload.main["volumeMounts"] if not each.get("readOnly")]
    volumes = {each["name"] for each in workload.pod["volumes"]}
    return any(
        path == each["mountPath"] or path.startswith(f"{each['mountPath']}/")
        for each in mounts
        if each["name"] in volumes
    )


def test_a_service_leads_to_the_port_that_its_program_listens_on(pods: list[Workload]) -> None:
    for each in pods:
        for service in of_kind(each.resources, "Service"):
            if not selects({"matchLabels": service["spec"]["selector"]}, each.labels):
                continue
            port = int(each.environment(each.main)[f"PAGEFLEET_{each.name.upper()}_PORT"])
            assert service["spec"]["ports"] == [
                {"name": "http", "port": port, "targetPort": "http"}
            ]
            assert {"name": "http", "containerPort": port} in each.main["ports"]


def test_every_program_that_counts_shows_it_where_prometheus_looks(pods: list[Workload]) -> None:
    counting = [each for each in pods if each.kind == "Deployment" and each.name != "flower"]
    for each in counting:
        settings = each.environment(each.main)
        port = int(settings["PAGEFLEET_METRICS_PORT"])
        assert settings["PAGEFLEET_METRICS_HOST"] not in {"", "127.0.0.1", "localhost"}
        assert {"name": "metrics", "containerPort": port} in each.main["ports"], each.name
        annotations = each.spec["template"]["metadata"]["annotations"]
        assert annotations == {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(port),
        }, each.name


@pytest.mark.parametrize("name", OVERLAYS)
def test_models_are_verified_before_a_pod_reads(name: str) -> None:
    (recognize,) = (each for each in workloads(overlay(name)) if each.name == "recognize")
    (verify,) = recognize.pod["initContainers"]

    main = recognize.main
    assert verify["args"] == ["models", "verify"]
    assert verify["image"] == main["image"]
    for setting in ("PAGEFLEET_MODELS_DIR", "PAGEFLEET_PROFILE"):
        assert recognize.environment(verify)[setting] == recognize.environment(main)[setting]
    assert read_only_mount(verify) == read_only_mount(main)


def read_only_mount(container: dict[str, Any]) -> dict[str, Any]:
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "models")
    assert mount == {"name": "models", "mountPath": "/models", "readOnly": True}
    return dict(mount)
