"""Puts the embedded stack together: servers, a bucket, the schema, the programs."""

import base64
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from cli.stack.child_process import run_to_end
from cli.stack.errors import ServerStartError, StackStoppedError
from cli.stack.folder_lock import FolderLock
from cli.stack.leash import Leash
from cli.stack.ports import LOOPBACK, free_ports, is_free
from cli.stack.postgres import Postgres
from cli.stack.program import Program, ProgramSpec
from cli.stack.remembered import Remembered, make_private_folder, write_private
from cli.stack.seaweedfs import SeaweedFS, Webhook
from cli.stack.state import StackState, logs_folder, remove_stack, stack_folder, write_stack
from cli.stack.supervisor import Supervisor
from cli.stack.valkey import Valkey

BUCKET = "pagefleet"
API_PORT = 8000
FLOWER_PORT = 5555
_FLOWER_USER = "pagefleet"
_KEY_FILE = "api_key"
_EVENTS = "/v1/events/s3"
_KEY_TIMEOUT_S = 60.0
_PORT_TRIES = 3
# A person who pressed Ctrl-C waits that long; what is not done goes back to the queue.
_WORKER_SHUTDOWN_S = 10
# What a worker takes at most after that, whatever hangs, and some more.
_END_MARGIN_S = 20
# Of one program each.
_NOT_HANDED_ON = frozenset({"PAGEFLEET_HEARTBEAT_FILE", "PAGEFLEET_METRICS_PORT"})
_SOURCES = Path(__file__).absolute().parent.parent.parent


@dataclass(frozen=True, kw_only=True)
class StackPlan:
    """What runs on the servers; data, so that a test can bring small programs of its own.

    Attributes:
        steps: run one after the other, each to its end, before the programs.
        key_argv: prints an API key; run once in a home's life. None: no key is made.
        programs: run together and restarted when they die.
        environment: what ``key_argv`` runs with.
        folder: where ``key_argv`` runs.
    """

    steps: Sequence[ProgramSpec]
    programs: Sequence[ProgramSpec]
    key_argv: Sequence[str] | None = None
    environment: Mapping[str, str]
    folder: Path = _SOURCES


def project_plan(state: StackState, *, home: Path, inherited: Mapping[str, str]) -> StackPlan:
    """Return Pagefleet's own programs.

    Args:
        state: the servers and ports they use.
        home: for ``PAGEFLEET_HOME``.
        inherited: the caller's environment; settings in it reach the programs, unless they
            name servers.
    """
    environment = {
        # One file for all programs would be nobody's.
        **{name: value for name, value in inherited.items() if name not in _NOT_HANDED_ON},
        **state.environment(),
        "PAGEFLEET_HOME": str(home),
        "PAGEFLEET_API_HOST": LOOPBACK,
        "PAGEFLEET_API_PORT": state.api_url.rpartition(":")[2],
        "PAGEFLEET_FLOWER_HOST": LOOPBACK,
        "PAGEFLEET_FLOWER_PORT": state.flower_url.rpartition(":")[2],
        "PAGEFLEET_FLOWER_USER": state.flower_user,
        "PAGEFLEET_FLOWER_PASSWORD": state.flower_password,
        "PAGEFLEET_SOFT_SHUTDOWN_S": str(_WORKER_SHUTDOWN_S),
        "PYTHONUNBUFFERED": "1",
    }

    def spec(
        name: str,
        *arguments: str,
        ready_url: str | None = None,
        authorization: str | None = None,
    ) -> ProgramSpec:
        return ProgramSpec(
            name=name,
            argv=[sys.executable, "-m", "cli", *arguments],
            environment=environment,
            folder=_SOURCES,
            ready_url=ready_url,
            authorization=authorization,
            grace_s=_WORKER_SHUTDOWN_S + _END_MARGIN_S,
        )

    return StackPlan(
        steps=[spec("migrate", "migrate")],
        key_argv=[
            *(sys.executable, "-m", "cli", "keys", "create"),
            *("--tenant", "default", "--name", "pagefleet up"),
        ],
        programs=[
            spec(
                "api",
                "api",
                ready_url=f"{state.api_url}/v1/documents?limit=1",
                authorization=f"Bearer {state.api_key}",
            ),
            spec("worker-recognize", "worker", "--queues", "recognize"),
            spec("worker-split", "worker", "--queues", "split,assemble"),
            # Apart: an export of a large document takes minutes, and others wait to be split.
            spec("worker-export", "worker", "--queues", "export", "--slots", "1"),
            spec("reconcile", "reconcile"),
            spec("webhooks", "webhooks"),
            spec(
                "flower",
                "flower",
                ready_url=f"{state.flower_url}/tasks",
                authorization=_basic(state.flower_user, state.flower_password),
            ),
        ],
        environment=environment,
    )


def run_stack(
    home: Path,
    plan_for: Callable[[StackState], StackPlan],
    *,
    report: Callable[[str], None],
    stop: threading.Event,
    ready: Callable[[StackState], None],
    check: Callable[[], None] | None = None,
    events_token: str | None = None,
) -> None:
    """Run a home's stack until ``stop`` is set; call it from the main thread.

    Args:
        home: its folder; made when it is not there.
        plan_for: what runs on the servers.
        report: takes a line for people about each thing that happens.
        stop: ends the stack, in order, with its data kept.
        ready: called once everything serves.
        check: raises what keeps the stack from starting; asked once the home is this stack's own.
        events_token: with which the object storage tells the API of new objects; None: it does not.

    Raises:
        FolderLockedError: a stack of this home runs.
        StackError: something does not start; what was started is stopped.
    """
    folder = stack_folder(home)
    make_private_folder(folder, is_passable=True)
    lock = FolderLock(folder)
    lock.acquire()
    leash = Leash()
    leash.start()
    supervisor = Supervisor(report, stop)
    try:
        if check is not None:
            check()
        start = partial(_start, home, plan_for, supervisor, leash, stop, events_token)
        state = _start_on_free_ports(home, supervisor, start)
        write_stack(home, state)
        ready(state)
        supervisor.watch()
    except StackStoppedError:
        report("stopped before everything was started")
    finally:
        remove_stack(home)
        supervisor.stop()
        leash.stop()
        lock.release()


def _start_on_free_ports(
    home: Path, supervisor: Supervisor, start: Callable[[], StackState]
) -> StackState:
    """Start everything, and once more on other ports when somebody was quicker to take one.

    Raises:
        ServerStartError: something does not start, for another reason or again and again.
    """
    for _ in range(_PORT_TRIES - 1):
        try:
            return start()
        except ServerStartError:
            supervisor.stop()
            ports = Remembered.load(stack_folder(home)).ports or ()
            if all(is_free(port) for port in ports):
                raise
    return start()


def _start(
    home: Path,
    plan_for: Callable[[StackState], StackPlan],
    supervisor: Supervisor,
    leash: Leash,
    stop: threading.Event,
    events_token: str | None,
) -> StackState:
    folder, logs = stack_folder(home), logs_folder(home)
    make_private_folder(logs)  # file names are in them
    valkey = Valkey(folder / "valkey", log_file=logs / "valkey.log", leash=leash)
    postgres = Postgres(folder / "postgres", log_file=logs / "postgres.log", leash=leash)
    # Before the servers, one of which is to know where the API listens.
    api_url, flower_url = _program_urls(folder)
    object_storage = SeaweedFS(
        folder / "seaweedfs",
        log_file=logs / "seaweedfs.log",
        leash=leash,
        webhook=None if events_token is None else Webhook(api_url + _EVENTS, events_token),
    )
    supervisor.start([valkey, postgres, object_storage])
    state = StackState(
        pid=os.getpid(),
        started_at=datetime.now(UTC),
        api_url=api_url,
        flower_url=flower_url,
        flower_user=_FLOWER_USER,
        flower_password=Remembered.load(folder).password,
        database_url=postgres.url(),
        redis_url=valkey.url(),
        s3_endpoint_url=object_storage.endpoint_url,
        s3_bucket=BUCKET,
        s3_region=object_storage.region,
        s3_access_key_id=object_storage.access_key_id,
        s3_secret_access_key=object_storage.secret_access_key,
    )
    _make_bucket(state)
    plan = plan_for(state)
    for spec in plan.steps:
        began_s = time.monotonic()
        supervisor.report(f"starting {spec.name}")
        step = Program(spec, logs_folder=logs, leash=leash)
        step.start()
        step.wait_end(stop)
        supervisor.report(f"{spec.name}: done ({time.monotonic() - began_s:.1f} s)")
    if plan.key_argv is not None:
        state = replace(state, api_key=_api_key(folder / _KEY_FILE, plan))
        plan = plan_for(state)  # now with the key
    supervisor.start([Program(spec, logs_folder=logs, leash=leash) for spec in plan.programs])
    return state


def _program_urls(folder: Path) -> tuple[str, str]:
    """Choose where API and Flower listen, and remember it."""
    # The well-known ports; where these are taken those of last time, and then any.
    remembered = Remembered.load(folder)
    last_time = remembered.ports or (API_PORT, FLOWER_PORT)
    preferred = [
        known if is_free(known) else last
        for known, last in zip((API_PORT, FLOWER_PORT), last_time, strict=True)
    ]
    api_port, flower_port = free_ports(2, preferred=preferred)
    Remembered(password=remembered.password, ports=(api_port, flower_port)).save(folder)
    return f"http://{LOOPBACK}:{api_port}", f"http://{LOOPBACK}:{flower_port}"


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _make_bucket(state: StackState) -> None:
    store = state.make_store()
    try:
        store.ensure_bucket()
    finally:
        store.close()


def _api_key(file: Path, plan: StackPlan) -> str:
    """Return the home's key; it is made once, as the database keeps only its hash."""
    if file.exists():
        return file.read_text("utf-8").strip()
    made = run_to_end(
        plan.key_argv or [],
        environment=plan.environment,
        timeout_s=_KEY_TIMEOUT_S,
        folder=plan.folder,
    )
    if made.returncode != 0:
        raise ServerStartError(f"no API key could be made:\n{made.stderr}")
    key = made.stdout.strip()
    write_private(file, key + "\n")
    return key
