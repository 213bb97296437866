"""A fleet whose processes can be killed at named points, and what has to hold afterwards."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import celery
import httpx
import pymupdf
import redis

from bench.faults.kill_points import POINTS, hook_environment
from db.states import (
    FINAL_DOCUMENT_STATES,
    OPEN_CHUNK_STATES,
    ChunkState,
    PageState,
    Priority,
)
from tests.support.fleet import Fleet, wait_for, without_run
from tests.support.services import S3Bucket, s3_client
from tests.support.text_pdfs import PROSE, picture_of, write_lines
from workers.celeryconfig import QUEUES, queue_list

# A recovery waits for a lease or a grace, and sometimes for one after the other.
END_TIMEOUT_S = 90.0
REACH_TIMEOUT_S = 60.0
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

# Every move of a state, as the database saw it: what is done twice leaves two of them.
_AUDIT = """
    CREATE TABLE moves (kind text, id text, source text, target text);
    CREATE FUNCTION log_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO moves VALUES (
        TG_TABLE_NAME,
        CASE TG_TABLE_NAME
          WHEN 'pages' THEN to_jsonb(NEW)->>'document_id' || ' ' || (to_jsonb(NEW)->>'page_index')
          ELSE to_jsonb(NEW)->>'id'
        END,
        OLD.state,
        NEW.state
      );
      RETURN NULL;
    END $$;
    CREATE TRIGGER log_moves AFTER UPDATE ON documents FOR EACH ROW
      WHEN (OLD.state <> NEW.state OR OLD.result_key IS DISTINCT FROM NEW.result_key
        OR OLD.finished_at IS DISTINCT FROM NEW.finished_at) EXECUTE FUNCTION log_move();
    CREATE TRIGGER log_moves AFTER UPDATE ON chunks FOR EACH ROW
      WHEN (OLD.state <> NEW.state OR OLD.result_key IS DISTINCT FROM NEW.result_key)
      EXECUTE FUNCTION log_move();
    CREATE TRIGGER log_moves AFTER UPDATE ON pages FOR EACH ROW EXECUTE FUNCTION log_move();
"""


_QUEUES = [f"{KEY_PREFIX}{queue_list(queue, each)}" for queue in QUEUES for each in Priority]
# Messages that workers hold; those of the dead stay there until the visibility timeout.
_UNACKED, _UNACKED_INDEX = f"{KEY_PREFIX}unacked", f"{KEY_PREFIX}unacked_index"

_FINAL = [*FINAL_DOCUMENT_STATES, ChunkState.SUCCEEDED, ChunkState.ISOLATED, PageState.OK]


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
    _held: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.redis = redis.Redis.from_url(
            self.broker_url, decode_responses=True, socket_timeout=2 * REACH_TIMEOUT_S
        )
        self.fleet.environment |= {**SETTINGS, **self.settings, **hook_environment(self.broker_url)}
        with self.fleet.database.transaction() as session:
            session.connection().exec_driver_sql(_AUDIT)
        self.start(*PROCESSES)
        self.sound = self.result(self.wait_until_final(self.submit()))

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

    def release(self, point: str) -> None:
        """Let one that waits go on."""
        self._held[point] -= 1
        self.redis.rpush(f"faults:{point}:release", 1)

    def settle(self) -> None:
        """End what a test left: let go who waits, forget all, start what is dead or was stopped."""
        for point in POINTS:
            self.redis.delete(f"faults:{point}", f"faults:{point}:reached")
            while self._held[point] > 0:
                self.release(point)
        self.redis.delete(_UNACKED, _UNACKED_INDEX, *_QUEUES)
        with self.fleet.database.transaction() as session:
            session.connection().exec_driver_sql("TRUNCATE moves, documents CASCADE")
        self.start(*(name for name in PROCESSES if not self.fleet.is_running(name)))

    def start(self, *names: str) -> None:
        for name in names:
            self.fleet.start(name, *PROCESSES[name])
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
        app = celery.Celery(broker=self.broker_url, set_as_current=False)
        app.conf.broker_transport_options = {"global_keyprefix": KEY_PREFIX}
        with app.connection_for_write() as connection:
            app.send_task(task, arguments, queue=queue, connection=connection)
        app.close()

    def rows(self, query: str, **values: object) -> list[tuple[Any, ...]]:
        """Return what a query finds."""
        with self.fleet.database.transaction() as session:
            found = session.connection().exec_driver_sql(query, values).all()
        return [tuple(row) for row in found]

    def value(self, query: str, **values: object) -> Any:
        """Return the only value that a query finds."""
        [(value,)] = self.rows(query, **values)
        return value

    def state(self, document_id: UUID) -> str:
        state: str = self.value("SELECT state FROM documents WHERE id = %(id)s", id=document_id)
        return state

    def wait_until_final(self, document_id: UUID, *, timeout_s: float = END_TIMEOUT_S) -> UUID:
        """Wait until a document's state is final; return its id."""
        wait_for(
            f"the end of document {document_id}",
            lambda: self.state(document_id) in FINAL_DOCUMENT_STATES or None,
            timeout_s=timeout_s,
        )
        return document_id

    def is_waiting_for_a_document(self) -> bool | None:
        """Say whether a transaction waits for another one's lock of a document; else None."""
        return (
            self.value(
                "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock' AND query LIKE '%%FROM documents%%FOR UPDATE%%'"
            )
            or None
        )

    def wait_until_idle_but(self, running: int) -> None:
        """Wait until all messages are taken, and all but ``running`` of them acknowledged."""
        wait_for(
            "the end of other messages",
            lambda: (self._waiting(), self.redis.hlen(_UNACKED)) == (0, running) or None,
            timeout_s=END_TIMEOUT_S,
        )

    def result(self, document_id: UUID) -> Result:
        state, key = self.rows(
            "SELECT state, result_key FROM documents WHERE id = %(id)s", id=document_id
        )[0]
        client = s3_client(self.bucket)
        body, text = (
            client.get_object(Bucket=self.bucket.name, Key=name)["Body"].read()
            for name in (key, key.replace("result.json", "result.txt"))
        )
        client.close()
        return Result(state, json.dumps(without_run(json.loads(body))), text)

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
        self._require_all_final()
        self._require_one_end_each()
        self._require_no_deadline()
        self._require_empty_queues()

    def _require_all_final(self) -> None:
        open_documents = self.value(
            "SELECT count(*) FROM documents WHERE state <> ALL(%(final)s)",
            final=list(FINAL_DOCUMENT_STATES),
        )
        open_chunks = self.value(
            "SELECT count(*) FROM chunks WHERE state = ANY(%(open)s)", open=list(OPEN_CHUNK_STATES)
        )
        open_pages = self.value(
            "SELECT count(*) FROM pages WHERE state = %(open)s", open=PageState.QUEUED
        )
        assert (open_documents, open_chunks, open_pages) == (0, 0, 0)

    def _require_one_end_each(self) -> None:
        ends = self.rows(
            "SELECT kind, id, count(*) FROM moves WHERE target = ANY(%(final)s)"
            " GROUP BY kind, id HAVING count(*) <> 1",
            final=_FINAL,
        )
        assert ends == []

    def _require_no_deadline(self) -> None:
        for table in ("documents", "chunks"):
            assert (
                self.rows(
                    f"SELECT id, state FROM {table} WHERE dispatch_after IS NOT NULL"  # noqa: S608
                    " OR lease_expires_at IS NOT NULL OR worker IS NOT NULL"
                )
                == []
            )

    def _require_empty_queues(self) -> None:
        """Require that hints about work that is done are taken and dropped, not left for ever."""
        wait_for(
            "the end of all messages",
            lambda: self._waiting() == 0 or None,
            timeout_s=END_TIMEOUT_S,
        )

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
