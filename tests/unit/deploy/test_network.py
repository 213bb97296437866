"""Who reaches whom in a cluster: nothing that is not said, and one program the Internet."""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.support.manifests import (
    OVERLAYS,
    Workload,
    named,
    of_kind,
    overlay,
    policies_of,
    selects,
    workloads,
)
from workers.webhook_target import is_public

PUBLIC = ["93.184.215.14", "2606:2800:21f:cb07::1"]
ANY_V4 = "0.0.0.0"  # noqa: S104 - nobody listens there
PRIVATE = [
    *("10.1.2.3", "172.20.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1", "169.254.169.254"),
    *(ANY_V4, "224.0.0.1", "255.255.255.255", "fd00::1", "fe80::1", "::1", "ff02::1"),
]
# Which Secret opens which server, and its label.
SERVERS = ("database", "broker", "storage")


@pytest.fixture(params=OVERLAYS)
def pods(request: pytest.FixtureRequest) -> list[Workload]:
    return workloads(overlay(request.param))


def ways_out(workload: Workload) -> Iterator[dict[str, Any]]:
    for policy in policies_of(workload):
        yield from policy.get("egress", [])


def reaches(workload: Workload, address: str) -> bool:
    """Tell whether pods of a workload may connect to an address outside the cluster."""
    for rule in ways_out(workload):
        assert rule["to"], "a rule without a target is for all"
        for target in rule["to"]:
            block = target.get("ipBlock")
            if block and holds(block["cidr"], address):
                return not any(holds(each, address) for each in block.get("except", []))
    return False


def holds(network: str, address: str) -> bool:
    return ip_address(address) in ip_network(network)


def test_a_pod_is_reached_by_nobody_and_reaches_nobody_unless_it_is_said(
    pods: list[Workload],
) -> None:
    closed = named(pods[0].resources, "NetworkPolicy", "nothing")["spec"]

    assert closed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_every_policy_is_for_a_pod_that_is_there(pods: list[Workload]) -> None:
    for policy in of_kind(pods[0].resources, "NetworkPolicy"):
        selector = policy["spec"]["podSelector"]
        assert any(selects(selector, each.labels) for each in pods), policy["metadata"]["name"]


@pytest.mark.parametrize("address", PUBLIC)
def test_the_sender_of_webhooks_alone_reaches_out(pods: list[Workload], address: str) -> None:
    assert is_public(ip_address(address))
    assert [each.name for each in pods if reaches(each, address)] == ["webhooks"]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_webhook_reaches_no_address_that_is_not_public(
    pods: list[Workload], address: str
) -> None:
    (webhooks,) = (each for each in pods if each.name == "webhooks")
    without_servers = [
        target["ipBlock"]
        for rule in ways_out(webhooks)
        for target in rule["to"]
        if target.get("ipBlock", {}).get("cidr") in {"0.0.0.0/0", "2000::/3"}
    ]

    assert len(without_servers) == 2
    assert not any(
        holds(block["cidr"], address)
        and not any(holds(each, address) for each in block.get("except", []))
        for block in without_servers
    )


@pytest.mark.parametrize("server", SERVERS)
def test_a_pod_reaches_the_servers_whose_secret_it_has(pods: list[Workload], server: str) -> None:
    label = f"pagefleet/reaches-{server}"
    by_role = {each.name for each in pods if each.pod["serviceAccountName"] == "storage"}
    by_role = by_role if server == "storage" else set()
    opened = {each.name for each in pods if server in each.secrets(each.main).values()}

    assert {each.name for each in pods if label in each.labels} == opened | by_role
    policy = named(pods[0].resources, "NetworkPolicy", f"to-{server}")["spec"]
    assert policy["podSelector"] == {"matchLabels": {label: "true"}}


def test_one_calls_the_api_and_flower_from_labeled_namespaces_alone(pods: list[Workload]) -> None:
    for each in pods:
        wanted = {f"pagefleet/calls-{each.name}"} if each.name in {"api", "flower"} else set()
        if "metrics" in {port["name"] for port in each.main.get("ports", [])}:
            wanted.add("pagefleet/reads-metrics")
        assert set(callers(each)) == wanted, each.name


def test_a_port_is_open_to_those_that_it_is_for(pods: list[Workload]) -> None:
    for each in pods:
        ports = {port["name"]: port["containerPort"] for port in each.main.get("ports", [])}
        for label, opened in callers(each).items():
            name = "metrics" if label == "pagefleet/reads-metrics" else "http"
            assert opened == [{"protocol": "TCP", "port": ports[name]}], each.name


def callers(workload: Workload) -> dict[str, Any]:
    """Return the label of namespaces that may call a workload's pods, and on which ports."""
    found = {}
    for policy in policies_of(workload):
        for rule in policy.get("ingress", []):
            (source,) = rule["from"]
            ((label, value),) = source["namespaceSelector"]["matchLabels"].items()
            assert (source.keys(), value) == ({"namespaceSelector"}, "true")
            found[label] = rule["ports"]
    return found
