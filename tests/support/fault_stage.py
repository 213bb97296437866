"""A fleet whose processes can be killed at named points, and what has to hold afterwards."""

import json
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import celery
import httpx
import pymupdf
import redis

from bench.faults.kill_points import POINTS, hook_environment
from db.states import FINAL_DOCUMENT_STATES, Priority
from tests.support.fault_checks import check_ended_once, forget_documents, log_moves
from tests.support.fleet import Fleet, wait_for, without_run
from tests.support.services import S3Bucket, s3_client
from tests.support.text_pdfs import PROSE, picture_of, write_lines
from workers.celeryconfig import QUEUES, SEPARATOR, queue_list

# A recovery waits for a lease or a grace, and sometimes for one after the other.
END_TIMEOUT_S = 90.0
REACH_TIMEOUT_S = 60.0
# Of one question to all workers; one that just starts does not hear it, and is asked again.
_ANSWER_TIMEOUT_S = 2.0
KEY_PREFIX = "stage:"

# Two of each, so that one goes on while the other is dead. Who splits and assembles loads no models
# and starts soon; three slots, so that three can be at it at once.
_READER = ("worker", "--queues", "recognize", "--slots", "1", "--name")
_CLERK = ("worker", "--queues", "split,assemble", "--slots")
PROCESSES = {
    "api": ("api",),
    "reader-a": (*_READER, "reader-a@%h"),
    "reader-b": (*_READER, "reader-b@%h"),
    "clerk-a": (*_CLERK, "2", "--name", "clerk-a@%h"),
    "clerk-b": (*_CLERK, "1", "--name", "clerk-b@%h"),
    "sweep-a": ("reconcile",),
    "sweep-b": ("reconcile",),
}
SWEEPS = ("sweep-a", "sweep-b")

# Short, and longer than a busy machine lets a healthy process wait.
SETTINGS = {
    "PAGEFLEET_CHUNK_PAGES": "2",
    "PAGEFLEET_LEASE_S": "3",
    "PAGEFLEET_DISPATCH_GRACE_S": "2",
    "PAGEFLEET_DISPATCH_INTERVAL_S": "0.2",
    "PAGEFLEET_SWEEP_INTERVAL_S": "0.3",
    "PAGEFLEET_RETRY_DELAY_S": "0.3",
    # A fault costs one attempt; a machine that is too busy for short leases must not cost the rest.
    "PAGEFLEET_MAX_ATTEMPTS": "20",
    "PAGEFLEET_REDIS_KEY_PREFIX": KEY_PREFIX,
}

_QUEUES = [f"{KEY_PREFIX}{queue_list(queue, each)}" for queue in QUEUES for each in Priority]
# Messages that workers hold; those of the dead stay there until the visibility timeout.
_UNACKED, _UNACKED_INDEX = f"{KEY_PREFIX}unacked", f"{KEY_PREFIX}unacked_index"


@dataclass(frozen=True, slots=True)
class Result:
    """What a document ends with, without what differs between two runs."""

    state: str
    json: str
    text: bytes

    @property
    def pages(self) -> list[dict[str, Any]]:
        pages: list[dict[str, Any]] = json.loads(self.json)["pages"]
        return pages


@dataclass
class FaultStage:
    """A fleet of which tests kill parts, one document to send through it, and its sound result."""

    fleet: Fleet
    bucket: S3Bucket
    broker_url: str
    document: Path
    settings: Mapping[str, str]
    more_processes: Mapping[str, tuple[str, ...]]
    _held: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.redis = redis.Redis.from_url(
            self.broker_url, decode_responses=True, socket_timeout=2 * REACH_TIMEOUT_S
        )
        self.fleet.environment |= {**SETTINGS, **self.settings, **hook_environment(self.broker_url)}
        log_moves(self.fleet.database)
        self.start(*self.processes)
        self.sound = self.result(self.wait_until_final(self.submit()))

    @property
    def processes(self) -> Mapping[str, tuple[str, ...]]:
        """Commands by name of process."""
        return {**PROCESSES, **self.more_processes}

    @property
    def workers(self) -> list[str]:
        """Names of those processes that take messages."""
        return [name for name, command in self.processes.items() if command[0] == "worker"]

    def arm(self, point: str, *actions: str) -> None:
        """Do harm to the next ones that come by, one action each; see the hook for the actions."""
        assert point in POINTS
        self.redis.rpush(f"faults:{point}", *actions)

    def reached(self, point: str) -> dict[str, Any]:
        """Wait until somebody came by an armed point; return who it was."""
        told = self.redis.blpop([f"faults:{point}:reached"], timeout=REACH_TIMEOUT_S)
        assert told is not None, f"nobody came by {point}"
        who: dict[str, Any] = json.loads(told[1])
        self._held[point] += who["action"] == "hold"
        return who

    def was_reached(self, point: str) -> bool:
        """Say whether somebody came by an armed point of whom ``reached`` has not told."""
        return bool(self.redis.exists(f"faults:{point}:reached"))

    def release(self, point: str) -> None:
        """Let one that waits go on."""
        self._held[point] -= 1
        self.redis.rpush(f"faults:{point}:release", 1)

    def forget_held(self, point: str) -> None:
        """Note that one that waited has ended, and needs not be let go."""
        self._held[point] -= 1

    def name_of(self, who: Mapping[str, Any]) -> str:
        """Return which process it is, or belongs to, that ``reached`` told of."""
        running = filter(self.fleet.is_running, self.processes)
        return next(name for name in running if self.fleet.pid(name) == who["group"])

    def settle(self) -> None:
        """End what a test left: let go who waits, forget all, start what is dead or was stopped.

        A worker whose child is dead keeps what it was sent for the next child. It would come by a
        point that the next test arms, long after the document it is about has ended; so workers
        that live on have to be done with all they hold.
        """
        for point in POINTS:
            self.redis.delete(f"faults:{point}", f"faults:{point}:reached")
            while self._held[point] > 0:
                self.release(point)
        self.redis.delete(_UNACKED, _UNACKED_INDEX, *_QUEUES)
        forget_documents(self.fleet.database)
        self.wait_until_workers_are_idle()
        self.start(*(name for name in self.processes if not self.fleet.is_running(name)))

    def start(self, *names: str) -> None:
        for name in names:
            self.fleet.start(name, *self.processes[name])
        self.fleet.wait_for_api()

    def log_of_clerks(self) -> str:
        """Return what those who split and assemble have logged, in earlier tests too."""
        return "".join(path.read_text() for path in self.fleet.logs.glob("clerk-*.log"))

    def stop_sweeps(self) -> None:
        for name in SWEEPS:
            self.fleet.terminate(name)

    def submit(self, **fields: str) -> UUID:
        """Upload the document and return its id."""
        return UUID(self.post(uuid4().hex, **fields).json()["id"])

    def post(self, idempotency_key: str, **fields: str) -> httpx.Response:
        """Upload the document under a key, again as long as the API dies of it.

        An API that is killed in the middle is started again, as its orchestrator would.
        """

        def look() -> httpx.Response | None:
            with suppress(httpx.TransportError), self.fleet.client as client:
                return client.post(
                    "/v1/documents",
                    files={"file": (self.document.name, self.document.read_bytes())},
                    data=fields,
                    headers={"Idempotency-Key": idempotency_key},
                )
            if not self.fleet.is_running("api"):
                self.start("api")
            return None

        answer = wait_for("an answer to an upload", look, timeout_s=REACH_TIMEOUT_S)
        assert answer.is_success, answer.text
        return answer

    def send(self, task: str, *arguments: object, queue: str) -> None:
        """Put a message of one's own on a queue."""
        with self._celery() as app, app.connection_for_write() as connection:
            app.send_task(task, arguments, queue=queue, connection=connection)

    def value(self, query: str, **values: object) -> Any:
        """Return the only value that a query finds."""
        [(value,)] = self.fleet.rows(query, **values)
        return value

    def state(self, document_id: UUID) -> str:
        state: str = self.value("SELECT state FROM documents WHERE id = %(id)s", id=document_id)
        return state

    def wait_until_final(self, document_id: UUID, *, timeout_s: float = END_TIMEOUT_S) -> UUID:
        """Wait until a document's state is final; return its id."""
        wait_for(
            f"the end of document {document_id}",
            lambda: self.state(document_id) in FINAL_DOCUMENT_STATES,
            timeout_s=timeout_s,
        )
        return document_id

    def is_waiting_for_a_document(self) -> bool:
        """Say whether a transaction waits for another one's lock of a document."""
        is_waiting: bool = self.value(
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND query LIKE '%%FROM documents%%FOR NO KEY UPDATE%%'"
        )
        return is_waiting

    def wait_until_idle_but(self, running: int) -> None:
        """Wait until all messages are taken, and all but ``running`` of them acknowledged."""
        wait_for(
            "the end of other messages",
            lambda: (self._waiting(), self.redis.hlen(_UNACKED)) == (0, running),
            timeout_s=END_TIMEOUT_S,
        )

    def is_a_worker_dead(self) -> bool:
        """Say whether one of the workers does not run."""
        return not all(map(self.fleet.is_running, self.workers))

    def wait_until_workers_are_idle(self) -> None:
        """Wait until each worker that is alive says that it holds no message."""
        running = filter(self.fleet.is_running, self.workers)
        nodes = [f"{name}@{socket.gethostname()}" for name in running]
        idle: dict[str, list[object]] = {node: [] for node in nodes}
        with self._celery() as app:
            inspect = app.control.inspect(nodes, timeout=_ANSWER_TIMEOUT_S, limit=len(nodes))

            def are_idle() -> bool:
                # In this order: what is reserved becomes active, never the other way round.
                return all(ask() == idle for ask in (inspect.reserved, inspect.active))

            wait_for(f"the end of what {nodes} hold", are_idle, timeout_s=END_TIMEOUT_S)

    def result(self, document_id: UUID) -> Result:
        state, key = self.fleet.rows(
            "SELECT state, result_key FROM documents WHERE id = %(id)s", id=document_id
        )[0]
        assert key is not None, f"{state}: {self.errors_of(document_id)}"
        client = s3_client(self.bucket)
        body, text = (
            client.get_object(Bucket=self.bucket.name, Key=name)["Body"].read()
            for name in (key, key.replace("result.json", "result.txt"))
        )
        client.close()
        return Result(state, json.dumps(without_run(json.loads(body))), text)

    def errors_of(self, document_id: UUID) -> list[tuple[Any, ...]]:
        """Return what went wrong with a document, and then with its pages."""
        return self.fleet.rows(
            "SELECT error_code, error_detail FROM documents WHERE id = %(id)s UNION ALL"
            " SELECT error_code, error_detail FROM pages WHERE document_id = %(id)s",
            id=document_id,
        )

    def check(self, *document_ids: UUID) -> None:
        """Require that these documents end as they would have without a fault, and nothing is open.

        Other documents of the test have to be final too, and each row came to its end once.
        """
        for document_id in document_ids:
            self.wait_until_final(document_id)
            assert self.result(document_id) == self.sound
        self.require_ended_once()

    def require_ended_once(self) -> None:
        """Require that each row of the test came to its end once, and nobody waits for any."""
        documents = self.fleet.rows("SELECT id FROM documents")
        check_ended_once(self.fleet.database, [document_id for (document_id,) in documents])
        self.wait_until_taken()

    def wait_until_taken(self) -> None:
        """Wait until workers have taken all messages, hints about work that is done too."""
        wait_for(
            "the end of all messages",
            lambda: self._waiting() == 0,
            timeout_s=END_TIMEOUT_S,
        )

    @contextmanager
    def _celery(self) -> Iterator[celery.Celery]:
        app = celery.Celery(broker=self.broker_url, set_as_current=False)
        app.conf.broker_transport_options = {"global_keyprefix": KEY_PREFIX, "sep": SEPARATOR}
        try:
            yield app
        finally:
            app.close()

    def _waiting(self) -> int:
        return sum(self.redis.llen(queue) for queue in _QUEUES)


def write_document(folder: Path) -> Path:
    """Write a PDF of four pages, of which two state their text and two are pictures of it."""
    document = pymupdf.open()
    for number in range(4):
        page = document.new_page(width=420, height=220)
        lines = [f"Page {number + 1} of the log of the light.", *PROSE[number : number + 3]]
        if number % 2:
            page.insert_image(page.rect, stream=picture_of(lines, width_pt=420, height_pt=220))
        else:
            write_lines(page, lines, x_pt=20, top_pt=40)
    path = folder / "light.pdf"
    document.save(path, deflate=True)
    document.close()
    return path
