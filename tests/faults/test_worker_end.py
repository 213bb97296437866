"""SIGTERM ends a process of every kind within its grace, and nothing is lost by it."""

import os
import signal
import threading
from collections.abc import Iterator

import httpx
import pytest

from cli.samples import Sample
from cli.stack.valkey import Valkey
from tests.support.fleet import Fleet, free_port, wait_for
from tests.support.processes import pool_children, stopped

TIMEOUT_S = 300
# The tests' workers let tasks run for 5 s; what they need besides is bounded (docs/cli.md), and
# the rest is for a machine that does other things.
GRACE_S = 60
START_LIMIT_S = 120
# A lease that outlasts every test: waiting for it would be seen.
ENDLESS_S = "3000"

PROCESSES = {
    "api": ("api",),
    "recognizer": ("worker", "--queues", "recognize", "--slots", "1"),
    "assembler": ("worker", "--queues", "split,assemble", "--slots", "1"),
    "reconciler": ("reconcile",),
    "flower": ("flower",),
}
# A line of the log after which the process works.
STARTED = {
    "api": "Uvicorn running",
    "recognizer": "slot ready",
    "assembler": "slot ready",
    "reconciler": "reconcile starts",
    "flower": "Visit me",
}
FORCED = {1}
# A worker whose broker does not answer cannot say goodbye to it.
STATUS_WHILE_THE_BROKER_HANGS = {
    "api": {0},
    "recognizer": FORCED,
    "assembler": FORCED,
    "reconciler": {0} | FORCED,
    "flower": {0},
}

pytestmark = pytest.mark.timeout(900)


def start(fleet: Fleet, name: str) -> int:
    """Start a process and return its group once it works."""
    fleet.start(
        name,
        *PROCESSES[name],
        PAGEFLEET_FLOWER_PORT=str(free_port()),
        PAGEFLEET_FLOWER_PASSWORD="not a secret",  # noqa: S106 - as it says
    )
    log = fleet.logs / f"{name}.log"
    wait_for(
        f"the start of {name}",
        lambda: STARTED[name] in log.read_text("utf-8"),
        timeout_s=START_LIMIT_S,
    )
    return fleet.pid(name)


def group_is_gone(group: int) -> bool:
    """Tell whether no process of a group is left, render children included."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("name", PROCESSES)
def test_an_idle_process_ends_in_order(idle_fleet: Fleet, name: str) -> None:
    group = start(idle_fleet, name)

    status = idle_fleet.terminate(name, grace_s=GRACE_S)

    assert status == 0
    wait_for("all it had started to end", lambda: group_is_gone(group), timeout_s=GRACE_S)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_ends_while_its_broker_hangs(
    idle_fleet: Fleet, own_valkey: Valkey, name: str
) -> None:
    idle_fleet.environment["PAGEFLEET_REDIS_URL"] = own_valkey.url()
    group = start(idle_fleet, name)

    with stopped(own_valkey.pid):
        status = idle_fleet.terminate(name, grace_s=GRACE_S)

    assert status in STATUS_WHILE_THE_BROKER_HANGS[name]
    wait_for("all it had started to end", lambda: group_is_gone(group), timeout_s=GRACE_S)


def test_a_worker_with_a_long_task_gives_it_back_and_ends(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    idle_fleet.environment["PAGEFLEET_LEASE_S"] = ENDLESS_S
    idle_fleet.environment["PAGEFLEET_SOFT_SHUTDOWN_S"] = "1"
    idle_fleet.start_all()
    document_id = idle_fleet.submit(samples["scanned-letters.pdf"].path)
    idle_fleet.wait_for_claim()
    group = idle_fleet.pid("recognizer")

    status = idle_fleet.terminate("recognizer", grace_s=GRACE_S)
    wait_for("all it had started to end", lambda: group_is_gone(group), timeout_s=GRACE_S)
    start(idle_fleet, "recognizer")
    view = idle_fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert status in {0, 1}
    assert view["state"] == "succeeded"
    # Nobody waited for the lease, and no attempt was counted.
    assert idle_fleet.rows("SELECT max(attempt - excused) FROM chunks") == [(1,)]


def test_a_worker_ends_while_a_replacement_child_loads(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    idle_fleet.start_all()
    recognizer = idle_fleet.pid("recognizer")
    wait_for("slots", lambda: pool_children(recognizer), timeout_s=START_LIMIT_S)
    document_id = idle_fleet.submit(samples["letters.pdf"].path)
    killed = idle_fleet.wait_for_claim()
    before = set(pool_children(recognizer))
    os.kill(killed, signal.SIGKILL)
    wait_for(
        "a replacement",
        lambda: set(pool_children(recognizer)) - before,
        timeout_s=START_LIMIT_S,
    )

    status = idle_fleet.terminate("recognizer", grace_s=GRACE_S)
    wait_for("all it had started to end", lambda: group_is_gone(recognizer), timeout_s=GRACE_S)
    start(idle_fleet, "recognizer")
    view = idle_fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)

    assert status in {0, 1}
    assert view["state"] == "succeeded"


def test_the_api_lets_an_open_upload_end(idle_fleet: Fleet, samples: dict[str, Sample]) -> None:
    start(idle_fleet, "api")
    body = samples["letters.pdf"].path.read_bytes()
    is_open, is_told = threading.Event(), threading.Event()

    def slowly() -> Iterator[bytes]:
        yield HEAD + body[:1000]
        is_open.set()
        assert is_told.wait(GRACE_S)
        yield body[1000:] + TAIL

    answers: list[httpx.Response] = []

    def upload() -> None:
        with idle_fleet.client as client:
            answers.append(client.post("/v1/documents", content=slowly(), headers=FORM))

    uploading = threading.Thread(target=upload)
    uploading.start()
    assert is_open.wait(GRACE_S)
    os.kill(idle_fleet.pid("api"), signal.SIGTERM)
    wait_for("the refusal of others", idle_fleet.is_refused, timeout_s=GRACE_S)
    is_told.set()
    uploading.join(GRACE_S)
    status = idle_fleet.terminate("api", grace_s=GRACE_S)

    assert status == 0
    assert [answer.status_code for answer in answers] == [httpx.codes.ACCEPTED]


BOUNDARY = "b0undary"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
HEAD = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="letters.pdf"\r\n'
    "Content-Type: application/pdf\r\n\r\n"
).encode()
TAIL = f"\r\n--{BOUNDARY}--\r\n".encode()
