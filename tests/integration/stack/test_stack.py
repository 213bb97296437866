import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import redis

from cli.stack import postgres_place
from cli.stack.commands import start_detached, stop_stack
from cli.stack.errors import FolderLockedError, ServerStartError, StackStoppedError
from cli.stack.program import ProgramSpec
from cli.stack.stack import StackPlan, run_stack
from cli.stack.state import StackState, read_stack, running_pid, stack_folder
from storage.s3 import S3ObjectStore
from tests.support.models import require_bundle
from tests.support.processes import (
    ROOT,
    are_gone,
    read_line,
    running_python,
    wait_until,
)
from workers.settings import models_dir

RUN_SMALL_STACK = """
import sys
from pathlib import Path
from tests.support.small_stack import main
main(Path(sys.argv[1]))
"""


@contextmanager
def new_home(services_folder: Path) -> Iterator[Path]:
    """Lend a new home that all users may enter."""
    home = services_folder / f"home-{uuid4().hex}"
    home.mkdir()
    home.chmod(0o755)
    yield home
    postgres_place.remove(stack_folder(home) / "postgres")
    shutil.rmtree(home)


@contextmanager
def small_stack(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a small stack that serves, and stop it in order."""
    with running_python(RUN_SMALL_STACK, str(home)) as process:
        assert read_line(process), "the stack did not start"
        yield process
        process.terminate()
        process.wait(60)


@pytest.fixture
def home(services_folder: Path) -> Iterator[Path]:
    with new_home(services_folder) as home:
        yield home


@pytest.fixture(scope="module")
def shared_home(services_folder: Path) -> Iterator[Path]:
    with new_home(services_folder) as home:
        yield home


@pytest.fixture(scope="module")
def shared_stack(shared_home: Path) -> Iterator[subprocess.Popen[str]]:
    """A stack for tests that leave it running, each start of which takes a while."""
    with small_stack(shared_home) as supervisor:
        yield supervisor


def serving(home: Path) -> StackState:
    state = read_stack(home)
    assert state is not None
    return state


def program_pids(home: Path) -> list[int]:
    """Return the program and its child, once both run."""
    pids_file = home / "pids"
    wait_until(lambda: pids_file.exists() and pids_file.read_text() != "")
    return [int(pid) for pid in pids_file.read_text().split()]


def children_of(pid: int) -> list[int]:
    listed = subprocess.run(  # noqa: S603 - a number only
        ["ps", "-o", "pid=", "--ppid", str(pid)],  # noqa: S607 - wherever it lies
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in listed.stdout.split()]


def store_of(state: StackState) -> S3ObjectStore:
    return S3ObjectStore(
        bucket=state.s3_bucket,
        endpoint_url=state.s3_endpoint_url,
        access_key_id=state.s3_access_key_id,
        secret_access_key=state.s3_secret_access_key,
    )


def test_everything_is_gone_after_the_supervisor_is_killed(home: Path) -> None:
    with small_stack(home) as supervisor:
        pids = [*children_of(supervisor.pid), *program_pids(home)]
        supervisor.kill()
        supervisor.wait()

        wait_until(lambda: are_gone(pids))

    assert len(set(pids)) >= 6  # three servers, the guard, the program and its child
    assert read_stack(home) is None


def test_everything_is_gone_after_the_stack_is_asked_to_stop(home: Path) -> None:
    with small_stack(home) as supervisor:
        pids = [*children_of(supervisor.pid), *program_pids(home)]
        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(60) == 0

    assert are_gone(pids)
    assert read_stack(home) is None
    assert running_pid(home) is None


def test_data_key_and_addresses_survive_a_restart(home: Path) -> None:
    with small_stack(home) as supervisor:
        first = serving(home)
        with psycopg.connect(first.database_url) as connection:
            connection.execute("CREATE TABLE kept ()")
        with redis.Redis.from_url(first.redis_url) as client:
            client.set("kept", "value")
        store_of(first).put("kept", b"value", media_type="text/plain")
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(60)

    with small_stack(home):
        second = serving(home)
        with psycopg.connect(second.database_url) as connection:
            connection.execute("SELECT FROM kept")
        with redis.Redis.from_url(second.redis_url) as client:
            kept = client.get("kept")
        body = store_of(second).get("kept")

    assert (kept, body) == (b"value", b"value")
    assert second.api_key == first.api_key
    assert second.database_url == first.database_url


def test_a_program_that_dies_is_started_again_without_what_it_left(
    shared_home: Path, shared_stack: subprocess.Popen[str]
) -> None:
    first = program_pids(shared_home)
    os.kill(first[0], signal.SIGKILL)

    wait_until(lambda: program_pids(shared_home) != first)

    assert are_gone(first)
    assert not are_gone(program_pids(shared_home))
    assert shared_stack.poll() is None


def test_a_server_that_dies_is_started_again_at_its_address(
    shared_home: Path, shared_stack: subprocess.Popen[str]
) -> None:
    state = serving(shared_home)
    with redis.Redis.from_url(state.redis_url) as client:
        os.kill(client.info()["process_id"], signal.SIGKILL)

    def answers() -> bool:
        try:
            with redis.Redis.from_url(state.redis_url) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False

    wait_until(answers)
    assert shared_stack.poll() is None


def test_a_second_up_of_a_home_fails_with_the_first_ones_pid(
    shared_home: Path, shared_stack: subprocess.Popen[str]
) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "cli", "up"],
        cwd=ROOT,
        env={**os.environ, "PAGEFLEET_HOME": str(shared_home)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert shared_stack.poll() is None
    assert refused.returncode == 1
    assert f"process {shared_stack.pid}" in refused.stderr


def test_the_stack_of_a_locked_home_does_not_start(
    shared_home: Path, shared_stack: subprocess.Popen[str]
) -> None:
    with pytest.raises(FolderLockedError) as refused:
        run_stack(shared_home, _no_plan, report=_ignore, stop=threading.Event(), ready=_never)

    assert refused.value.owner_pid == shared_stack.pid


@pytest.mark.usefixtures("shared_stack")
def test_only_the_owner_can_read_the_stacks_passwords(shared_home: Path) -> None:
    state = serving(shared_home)

    assert stat.S_IMODE((shared_home / "stack.json").stat().st_mode) == 0o600
    assert state.flower_password not in repr(state)


def test_down_stops_the_stack_and_says_when_none_runs(home: Path) -> None:
    def down() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cli", "down"],
            cwd=ROOT,
            env={**os.environ, "PAGEFLEET_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        )

    with small_stack(home) as supervisor:
        stopped = down()

        assert supervisor.wait(5) == 0

    assert "Stopped" in stopped.stderr
    assert "No stack runs" in down().stderr


def test_a_step_that_fails_stops_everything_and_shows_its_log(home: Path) -> None:
    def plan(_: StackState) -> StackPlan:
        failing = ProgramSpec(
            name="migrate",
            argv=[sys.executable, "-c", "raise SystemExit('no such table')"],
            environment={},
            folder=home,
        )
        return StackPlan(steps=[failing], programs=[], environment={})

    with pytest.raises(ServerStartError, match="no such table"):
        run_stack(home, plan, report=_ignore, stop=threading.Event(), ready=_never)

    assert running_pid(home) is None


def test_a_stack_that_is_stopped_while_it_starts_ends_without_an_error(home: Path) -> None:
    stop = threading.Event()
    stop.set()
    lines: list[str] = []

    run_stack(home, _no_plan, report=lines.append, stop=stop, ready=_never)

    assert lines == ["stopped before everything was started"]
    assert running_pid(home) is None


def _ignore(_: str) -> None:
    pass


def _never(_: StackState) -> None:
    pytest.fail("the stack must not serve")


def _no_plan(_: StackState) -> StackPlan:
    return StackPlan(steps=[], programs=[], environment={})


SERVE = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler
HTTPServer.allow_reuse_address = False
HTTPServer(("127.0.0.1", int(sys.argv[1])), SimpleHTTPRequestHandler).serve_forever()
"""


def test_a_port_that_somebody_takes_during_the_start_is_replaced(home: Path) -> None:
    stop = threading.Event()
    taken: list[socket.socket] = []
    planned: list[int] = []
    served: list[StackState] = []

    def plan(state: StackState) -> StackPlan:
        port = int(state.api_url.rpartition(":")[2])
        planned.append(port)
        if not taken:
            taken.append(socket.create_server(("127.0.0.1", port)))
        spec = ProgramSpec(
            name="program",
            argv=[sys.executable, "-c", SERVE, str(port)],
            environment={"PATH": os.defpath},
            folder=home,
            ready_url=state.api_url,
        )
        return StackPlan(steps=[], programs=[spec], environment={})

    def ready(state: StackState) -> None:
        served.append(state)
        stop.set()

    run_stack(home, plan, report=lambda _: None, stop=stop, ready=ready)
    taken[0].close()

    assert served[0].api_url.endswith(f":{planned[-1]}")
    assert planned[-1] != planned[0]


def test_a_start_in_the_background_that_is_stopped_is_no_failure_of_the_stack(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_bundle()
    monkeypatch.setenv("PAGEFLEET_MODELS_DIR", str(models_dir()))

    def stop_once_it_starts() -> None:
        wait_until(lambda: running_pid(home) is not None, timeout_s=120)
        stop_stack(home)

    stopping = threading.Thread(target=stop_once_it_starts)
    stopping.start()
    with pytest.raises(StackStoppedError):
        start_detached(home, report=print)
    stopping.join()
