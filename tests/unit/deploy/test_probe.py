"""The probe of the images says of a heartbeat what ``pagefleet alive`` says."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.commands import ROOT
from workers.heartbeat import Heartbeat, started_file
from workers.settings import HeartbeatSettings

PROBE = ROOT / "deploy" / "docker" / "pagefleet-probe"
TIMEOUT_S = 60
LIMIT_S = int(HeartbeatSettings.model_fields["heartbeat_limit_s"].default)


@pytest.fixture
def heartbeat_file(tmp_path: Path) -> Path:
    return tmp_path / "run" / "heartbeat.json"


def probe(heartbeat_file: Path | None, *arguments: str, **settings: str) -> tuple[int, str]:
    """Ask it with an environment of its own; return exit code and what it says."""
    named = {} if heartbeat_file is None else {"PAGEFLEET_HEARTBEAT_FILE": str(heartbeat_file)}
    ended = subprocess.run(  # noqa: S603 - a script of ours
        [str(PROBE), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={"PATH": os.defpath, **named, **settings},
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_a_process_that_has_just_beaten_lives(heartbeat_file: Path) -> None:
    Heartbeat(heartbeat_file, name="reconcile").beat()

    assert probe(heartbeat_file, "alive") == (0, "")


def test_a_process_without_a_heartbeat_does_not(heartbeat_file: Path) -> None:
    status, said = probe(heartbeat_file, "alive")

    assert (status, said.startswith("no heartbeat")) == (1, True)


@pytest.mark.parametrize(("age_s", "status"), [(LIMIT_S - 20, 0), (LIMIT_S + 20, 1)])
def test_the_limit_is_that_of_the_settings(heartbeat_file: Path, age_s: int, status: int) -> None:
    Heartbeat(heartbeat_file, name="reconcile").beat(age_s=age_s)

    assert probe(heartbeat_file, "alive")[0] == status


@pytest.mark.parametrize("limit", ["20", "20.5"])
def test_a_limit_that_is_set_counts(heartbeat_file: Path, limit: str) -> None:
    Heartbeat(heartbeat_file, name="reconcile").beat(age_s=40)

    status, said = probe(heartbeat_file, "alive", PAGEFLEET_HEARTBEAT_LIMIT_S=limit)
    assert status == 1
    assert f"more than {limit} s" in said


def test_a_worker_has_not_started_before_a_slot_has(heartbeat_file: Path) -> None:
    Heartbeat(heartbeat_file, name="recognize").beat()
    before = probe(heartbeat_file, "started")

    started_file(heartbeat_file).touch()

    assert before == (1, "no slot has started yet\n")
    assert probe(heartbeat_file, "started") == (0, "")


def test_a_worker_that_started_and_hangs_has_not_started(heartbeat_file: Path) -> None:
    Heartbeat(heartbeat_file, name="recognize").beat(age_s=LIMIT_S + 20)
    started_file(heartbeat_file).touch()

    assert probe(heartbeat_file, "started")[0] == 1


@pytest.mark.parametrize("arguments", [(), ("ready",)])
def test_it_says_how_it_is_called(heartbeat_file: Path, arguments: tuple[str, ...]) -> None:
    Heartbeat(heartbeat_file, name="recognize").beat()

    assert probe(heartbeat_file, *arguments)[0] == 2


def test_without_the_setting_it_says_which_is_missing() -> None:
    status, said = probe(None, "alive")

    assert status != 0
    assert "PAGEFLEET_HEARTBEAT_FILE" in said


def test_it_starts_no_python(heartbeat_file: Path) -> None:
    """A probe runs every few seconds in every pod; importing the program takes 0.3 s of CPU."""
    Heartbeat(heartbeat_file, name="recognize").beat()
    began = time.process_time()

    assert "python" not in PROBE.read_text("utf-8").replace("without starting Python", "")
    assert probe(heartbeat_file, "alive")[0] == 0
    assert time.process_time() - began < 1
