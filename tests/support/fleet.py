"""Real processes of every kind, on the test's own servers, to be watched, killed and replaced."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from db import api_keys
from db.engine import Database
from tests.support.models import require_bundle, share_prepared_graphs
from tests.support.plain_http import NO_TLS
from tests.support.services import S3Bucket
from workers.settings import models_dir

T = TypeVar("T")

POLL_S = 0.1
READY_TIMEOUT_S = 120.0
TENANT = "acceptance"
# What a stack has.
COMMANDS = {
    "api": ("api",),
    "assembler": ("worker", "--queues", "split,assemble", "--slots", "1"),
    "recognizer": ("worker", "--queues", "recognize", "--slots", "2"),
    "reconciler": ("reconcile",),
}
_STOP_TIMEOUT_S = 60.0


def wait_for(what: str, look: Callable[[], T | None], *, timeout_s: float) -> T:
    """Return what ``look`` finds as soon as it finds something: what is true, or not empty.

    Raises:
        AssertionError: it found nothing in time.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(POLL_S)
    raise AssertionError(f"waited {timeout_s:g} s in vain for {what}")


@dataclass
class Fleet:
    """Processes of Pagefleet in process groups of their own; logs go to files."""

    environment: dict[str, str]
    logs: Path
    key: str
    database: Database
    _processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str, *arguments: str, **settings: str) -> None:
        """Start one process; ``settings`` are variables of its own."""
        with (self.logs / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "cli", *arguments],
                env={**self.environment, **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_all(self) -> None:
        """Start one process of each kind, and wait until the API answers."""
        for name, arguments in COMMANDS.items():
            self.start(name, *arguments)
        self.wait_for_api()

    def wait_for_api(self) -> None:
        """Return once the API takes connections."""
        wait_for("the API", self._api_answers, timeout_s=READY_TIMEOUT_S)

    def ended(self) -> list[str]:
        """Return the names of the processes that ended by themselves."""
        return [name for name, process in self._processes.items() if process.poll() is not None]

    def is_running(self, name: str) -> bool:
        """Say whether a process was started and neither ended nor was asked to end."""
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def wait_for_end(self, name: str, *, timeout_s: float) -> int:
        """Return the exit status of a process that ends by itself.

        Raises:
            subprocess.TimeoutExpired: it does not.
        """
        status = self._processes[name].wait(timeout_s)
        del self._processes[name]
        return status

    def kill_group(self, name: str) -> None:
        """Kill a process and all its children at once, as a lost machine would."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End everything, politely first."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @property
    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.api_url,
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=30,
            verify=NO_TLS,
        )

    @property
    def api_url(self) -> str:
        host, port = self.environment["PAGEFLEET_API_HOST"], self.environment["PAGEFLEET_API_PORT"]
        return f"http://{host}:{port}"

    def submit(self, path: Path) -> UUID:
        """Upload a file and return its document's id."""
        with self.client as client, path.open("rb") as file:
            answer = client.post("/v1/documents", files={"file": (path.name, file)})
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        return UUID(answer.json()["id"])

    def submit_all(self, paths: Iterable[Path]) -> dict[str, UUID]:
        """Upload files and return their documents' ids by file name."""
        return {path.name: self.submit(path) for path in paths}

    def results(self, ids: dict[str, UUID], *, timeout_s: float) -> dict[str, dict[str, Any]]:
        """Wait for documents and return their results, without what differs between two runs."""
        for document_id in ids.values():
            self.wait_until_final(document_id, timeout_s=timeout_s)
        return {name: without_run(self.result(document_id)) for name, document_id in ids.items()}

    def terminate(self, name: str, *, grace_s: float = _STOP_TIMEOUT_S) -> int:
        """Ask a process to end, as an orchestrator does, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs after its grace, which an orchestrator ends
                by SIGKILL.
        """
        process = self._processes[name]
        process.terminate()
        status = process.wait(grace_s)
        del self._processes[name]
        return status

    def document(self, document_id: UUID) -> dict[str, Any]:
        with self.client as client:
            view: dict[str, Any] = client.get(f"/v1/documents/{document_id}").json()
        return view

    def wait_until_final(self, document_id: UUID, *, timeout_s: float) -> dict[str, Any]:
        """Return a document's view once its state is final."""

        def look() -> dict[str, Any] | None:
            view = self.document(document_id)
            is_open = view["state"] in {"queued", "splitting", "recognizing", "assembling"}
            return None if is_open else view

        return wait_for(f"document {document_id}", look, timeout_s=timeout_s)

    def result(self, document_id: UUID) -> dict[str, Any]:
        with self.client as client:
            result: dict[str, Any] = client.get(f"/v1/documents/{document_id}/result").json()
        return result

    def rows(self, query: str, *parameters: object, **named: object) -> list[tuple[Any, ...]]:
        """Return what the database says; placeholders are ``%s`` or ``%(name)s``."""
        with self.database.transaction() as session:
            found = session.connection().exec_driver_sql(query, named or parameters).all()
        return [tuple(row) for row in found]

    def wait_for_claim(self) -> int:
        """Return the process id of a pool child that holds a chunk right now."""

        def look() -> int | None:
            workers = self.rows("SELECT worker FROM chunks WHERE state = 'running' LIMIT 1")
            return int(workers[0][0].rpartition(":")[2]) if workers else None

        return wait_for("a claimed chunk", look, timeout_s=READY_TIMEOUT_S)

    def is_refused(self) -> bool:
        """Tell whether no API accepts connections."""
        return not self._api_answers()

    def _api_answers(self) -> bool:
        address = urlsplit(self.api_url)
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((address.hostname, address.port)) == 0


def without_run(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what differs between two runs."""
    for part in [result["usage"], *result["pages"]]:
        part.pop("seconds", None)
    del result["document_id"]
    return result


@contextmanager
def lent_fleet(
    *, database_url: str, redis_url: str, bucket: S3Bucket, home: Path
) -> Iterator[Fleet]:
    """Lend processes of every kind on the given servers, none of them started yet."""
    require_bundle()
    share_prepared_graphs(home)
    database = Database(database_url)
    fleet = Fleet(
        environment=_environment(
            database_url=database_url, redis_url=redis_url, bucket=bucket, home=home
        ),
        logs=home,
        key=_make_key(database),
        database=database,
    )
    try:
        yield fleet
    finally:
        fleet.stop()
        database.dispose()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _environment(
    *, database_url: str, redis_url: str, bucket: S3Bucket, home: Path
) -> dict[str, str]:
    """Return the variables of a fleet on the given servers, with the delays of a test."""
    return {
        "PATH": os.environ["PATH"],
        "PAGEFLEET_HOME": str(home),
        "PAGEFLEET_MODELS_DIR": str(models_dir()),
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_REDIS_URL": redis_url,
        **bucket.environment(),
        "PAGEFLEET_DEVICE": "cpu",
        "PAGEFLEET_LEASE_S": "6",
        "PAGEFLEET_DISPATCH_GRACE_S": "4",
        "PAGEFLEET_RETRY_DELAY_S": "1",
        "PAGEFLEET_SWEEP_INTERVAL_S": "1",
        "PAGEFLEET_SOFT_SHUTDOWN_S": "5",
        # Most tests send a file again to see it read again.
        "PAGEFLEET_DOCUMENT_CACHE": "false",
        "PAGEFLEET_PAGE_CACHE": "false",
        "PAGEFLEET_API_HOST": "127.0.0.1",
        "PAGEFLEET_API_PORT": str(free_port()),
    }


def _make_key(database: Database) -> str:
    with database.transaction() as session:
        return api_keys.create(session, tenant=TENANT, name="tests")
