"""``pagefleet alive`` as a probe runs it; the processes themselves are in tests/faults."""

import json
from pathlib import Path

from tests.support.commands import run_pagefleet
from workers import heartbeat
from workers.heartbeat import Heartbeat


def write_heartbeat(home: Path, name: str, *, age_s: float) -> Path:
    file = heartbeat.default_file(home, name)
    Heartbeat(file, name=name).beat(age_s=age_s)
    return file


def test_all_heartbeats_of_a_home_have_to_be_young(tmp_path: Path) -> None:
    write_heartbeat(tmp_path, "recognize", age_s=0)
    write_heartbeat(tmp_path, "reconcile", age_s=5_000)

    answer = run_pagefleet("alive", "--json", PAGEFLEET_HOME=str(tmp_path))
    named = run_pagefleet("alive", "recognize", PAGEFLEET_HOME=str(tmp_path))

    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    assert answer.returncode == 1
    assert [(line["name"], line["alive"]) for line in lines] == [
        ("recognize", True),
        ("reconcile", False),
    ]
    assert named.returncode == 0


def test_a_setting_names_the_file(tmp_path: Path) -> None:
    file = write_heartbeat(tmp_path / "elsewhere", "recognize", age_s=0)

    answer = run_pagefleet(
        "alive", PAGEFLEET_HOME=str(tmp_path), PAGEFLEET_HEARTBEAT_FILE=str(file)
    )

    assert answer.returncode == 0


def test_a_wrong_setting_is_named_without_a_traceback(tmp_path: Path) -> None:
    answer = run_pagefleet(
        "alive", PAGEFLEET_HOME=str(tmp_path), PAGEFLEET_HEARTBEAT_LIMIT_S="soon"
    )

    assert answer.returncode == 2
    assert "PAGEFLEET_HEARTBEAT_LIMIT_S" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_nothing_to_look_at_is_not_alive(tmp_path: Path) -> None:
    answer = run_pagefleet("alive", "--json", PAGEFLEET_HOME=str(tmp_path))

    assert answer.returncode == 1
    assert json.loads(answer.stdout) == {"name": None, "alive": False, "age_s": None, "pid": None}
