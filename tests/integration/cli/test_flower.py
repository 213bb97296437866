"""``pagefleet flower`` as a process: who gets in, and what of the surroundings it minds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cli.stack.valkey import Valkey
from tests.support.api_server import free_port
from tests.support.commands import ROOT
from tests.support.fleet import wait_for
from tests.support.flower import Flower, addresses_that_change, addresses_that_read

PASSWORD = "blotting-paper"  # noqa: S105 - guards a server of a test
# It says OK, and the other that there is nothing to log out of.
OPEN = {"/healthcheck", "/logout"}
GUARDED = sorted(set(addresses_that_read()) - OPEN)
FOREIGN = {
    "FLOWER_PORT": "tcp://10.0.0.1:5555",  # as Kubernetes gives it for a service of this name
    "FLOWER_READ_ONLY": "false",
    "FLOWER_BASIC_AUTH": "mallory:password",
}
CONFIG = 'basic_auth = ["mallory:password"]\nopen("was run", "w").close()\n'
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Flower is started, with a configuration of somebody else's."""
    folder = tmp_path_factory.mktemp("flower")
    (folder / "flowerconfig.py").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def flower(valkey: Valkey, folder: Path) -> Iterator[Flower]:
    port = free_port()
    served = Flower(f"http://127.0.0.1:{port}", ("pagefleet", PASSWORD))
    with (folder / "flower.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "cli", "flower", "--port", str(port)],
            cwd=folder,
            env={
                **FOREIGN,
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "PAGEFLEET_HOME": str(folder),
                "PAGEFLEET_DATABASE_URL": "postgresql://unused",
                "PAGEFLEET_REDIS_URL": valkey.url(),
                "PAGEFLEET_S3_BUCKET": "unused",
                "PAGEFLEET_FLOWER_PASSWORD": PASSWORD,
            },
            stdout=log,
            stderr=log,
        )
        try:
            wait_for("Flower", lambda: is_serving(served, process), timeout_s=LIMIT_S)
            yield served
        finally:
            process.kill()
            process.wait()


def is_serving(flower: Flower, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, "Flower ended"
    try:
        return flower.ask("GET", "/healthcheck").text == "OK"
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("pattern", GUARDED)
@pytest.mark.parametrize("account", [None, ("pagefleet", "blotting"), ("mallory", "password")])
def test_nobody_reads_without_the_password(
    flower: Flower, pattern: str, account: tuple[str, str] | None
) -> None:
    answer = flower.ask("GET", path_of(pattern), auth=account)

    assert answer.status_code == 401


@pytest.mark.parametrize("pattern", addresses_that_change())
def test_nobody_changes_anything_without_the_password(flower: Flower, pattern: str) -> None:
    assert flower.ask("POST", path_of(pattern)).status_code == 401


@pytest.mark.parametrize("path", ["/", "/tasks", "/broker", "/metrics", "/api/tasks"])
def test_who_has_the_password_reads(flower: Flower, path: str) -> None:
    assert flower.get(path).status_code == 200


def test_a_configuration_that_lies_where_it_is_started_is_not_run(
    flower: Flower, folder: Path
) -> None:
    assert flower.get("/tasks").status_code == 200
    assert not (folder / "was run").exists()


def path_of(pattern: str) -> str:
    return pattern.replace("(.+)", "x").replace("(.*)", "x")
