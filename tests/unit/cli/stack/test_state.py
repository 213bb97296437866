import os
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.stack.folder_lock import FolderLock
from cli.stack.remembered import Remembered
from cli.stack.stack import project_plan
from cli.stack.state import StackState, read_stack, remove_stack, stack_folder, write_stack

STATE = StackState(
    pid=os.getpid(),
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    api_url="http://127.0.0.1:8001",
    api_key="pf_key",
    flower_url="http://127.0.0.1:5556",
    flower_user="pagefleet",
    flower_password="flower-secret",  # noqa: S106 - made up
    database_url="postgresql://pagefleet:database-secret@127.0.0.1:1/pagefleet",
    redis_url="redis://:redis-secret@127.0.0.1:2/0",
    s3_endpoint_url="http://127.0.0.1:3",
    s3_bucket="pagefleet",
    s3_region="us-east-1",
    s3_access_key_id="pagefleet",
    s3_secret_access_key="s3-secret",  # noqa: S106 - made up
)


@pytest.fixture
def lock(tmp_path: Path) -> FolderLock:
    stack_folder(tmp_path).mkdir()
    return FolderLock(stack_folder(tmp_path))


def test_a_running_stack_is_read_as_it_was_written(tmp_path: Path, lock: FolderLock) -> None:
    lock.acquire()
    write_stack(tmp_path, STATE)

    assert read_stack(tmp_path) == STATE
    lock.release()


def test_what_a_killed_stack_left_is_no_stack(tmp_path: Path, lock: FolderLock) -> None:
    lock.acquire()
    write_stack(tmp_path, STATE)
    lock.release()

    assert read_stack(tmp_path) is None


def test_what_an_earlier_stack_left_is_not_the_one_that_starts(
    tmp_path: Path, lock: FolderLock
) -> None:
    write_stack(tmp_path, replace(STATE, pid=STATE.pid + 1))
    lock.acquire()

    assert read_stack(tmp_path) is None
    lock.release()


def test_no_stack_is_read_where_none_was(tmp_path: Path) -> None:
    remove_stack(tmp_path)

    assert read_stack(tmp_path) is None


def test_no_secret_of_a_stack_is_shown() -> None:
    shown = repr(STATE)

    assert "secret" not in shown.replace("s3_secret_access_key", "")
    assert "pf_key" not in shown


def test_the_programs_get_servers_and_ports_over_what_they_inherit(tmp_path: Path) -> None:
    plan = project_plan(
        STATE,
        home=tmp_path,
        inherited={"PAGEFLEET_REDIS_URL": "redis://elsewhere", "PAGEFLEET_SLOTS": "3"},
    )

    environments = [spec.environment for spec in (*plan.steps, *plan.programs)]
    assert all(environment == plan.environment for environment in environments)
    assert plan.environment["PAGEFLEET_REDIS_URL"] == STATE.redis_url
    assert plan.environment["PAGEFLEET_SLOTS"] == "3"
    assert plan.environment["PAGEFLEET_API_PORT"] == "8001"
    assert plan.environment["PAGEFLEET_FLOWER_PORT"] == "5556"


def test_the_schema_comes_before_the_programs(tmp_path: Path) -> None:
    plan = project_plan(STATE, home=tmp_path, inherited={})

    assert [spec.name for spec in plan.steps] == ["migrate"]
    assert [spec.name for spec in plan.programs] == [
        "api",
        "worker-recognize",
        "worker-split",
        "worker-export",
        "reconcile",
        "webhooks",
        "flower",
    ]


def test_a_password_is_remembered_and_private(tmp_path: Path) -> None:
    first = Remembered.load(tmp_path)
    Remembered(password=first.password, ports=(1, 2)).save(tmp_path)

    assert Remembered.load(tmp_path) == Remembered(password=first.password, ports=(1, 2))
    assert stat.S_IMODE((tmp_path / "server.json").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["server.json"]


def test_every_server_gets_a_password_of_its_own(tmp_path: Path) -> None:
    assert Remembered.load(tmp_path).password != Remembered.load(tmp_path).password
    assert len(Remembered.load(tmp_path).password) >= 32


def test_the_port_of_one_programs_metrics_reaches_none_of_many(tmp_path: Path) -> None:
    plan = project_plan(
        STATE,
        home=tmp_path,
        inherited={"PAGEFLEET_METRICS_PORT": "9100", "PAGEFLEET_METRICS_HOST": "0.0.0.0"},  # noqa: S104 - nobody listens
    )

    assert "PAGEFLEET_METRICS_PORT" not in plan.environment
    assert plan.environment["PAGEFLEET_METRICS_HOST"] == "0.0.0.0"  # noqa: S104 - nobody listens
