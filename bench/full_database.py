"""A database that has seen millions of pages: what it holds, and what its statements take then."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final, TypeVar
from uuid import UUID

from bench.errors import BenchError
from bench.machine import describe_machine
from db import admission, batches, chunks, documents, outbox, usage
from db.chunks import PageRecord
from db.engine import Database, Session
from db.ids import new_id
from db.models import Batch, Document
from db.outbox import Turns, Work
from db.planned_chunks import plan_chunks
from db.states import DocumentState, PageState, Priority
from storage import keys
from workers.ocr.options import OcrOptions

Claim = TypeVar("Claim")

TENANT: Final = "bench"
_CHUNK_PAGES: Final = 16
_ROWS_AT_ONCE: Final = 1_000
_DRIVEN: Final = 200
_LOOKS: Final = 7
_ROOM: Final = 200
_CLAIM: Final[Mapping[str, Any]] = {"worker": "bench", "lease_s": 60.0, "max_attempts": 1}
_ENDLESS_S: Final = 1e6
_SECONDS: Final = {"render": 0.0312, "detect": 0.4127, "recognize": 0.5213}


def measure(
    database: Database,
    *,
    documents_done: int,
    pages_each: int,
    queued: int,
    on_done: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Time what a fleet asks of an empty database, let it live, and time it again.

    Every document goes the whole way in the transactions of a fleet, so what updates leave behind
    is there too.

    Args:
        database: with the newest schema and no rows.
        documents_done: how many are finished.
        pages_each: pages of each.
        queued: documents that wait after that.
        on_done: told what is being done, how much of it, and how much it will be.
    """
    driven = min(_DRIVEN, documents_done)
    empty = _Life(database, pages_each).times_ms(driven)
    before = _sizes(database)
    life = _Life(database, pages_each)
    for number in range(1, documents_done + 1):
        life.finish_one()
        on_done("finished", number, documents_done)
    kept = {name: size - before[name] for name, size in _sizes(database).items()}
    for number in range(0, queued, _ROWS_AT_ONCE):
        life.add_queued(min(_ROWS_AT_ONCE, queued - number))
        on_done("queued", number, queued)
    return {
        "machine": describe_machine(),
        "documents": documents_done,
        "pages": documents_done * pages_each,
        "queued": queued,
        "bytes_per_document": round((kept["documents"] + kept["chunks"]) / documents_done),
        "bytes_per_page": round(kept["pages"] / (documents_done * pages_each)),
        "empty": empty,
        "full": life.times_ms(driven),
    }


class _Life:
    """Documents of one size in one batch, from upload to result."""

    def __init__(self, database: Database, page_count: int) -> None:
        self._database = database
        self._page_count = page_count
        self._batch_id = new_id()
        with database.transaction() as session:
            session.add(Batch(id=self._batch_id, tenant=TENANT, name="bench"))

    def times_ms(self, driven: int) -> dict[str, float]:
        """Return medians in milliseconds, and the WAL of one document, over ``driven`` of them."""
        wal_before = self._wal_bytes()
        times = {"document_ms": _median_ms(self.finish_one, driven)}
        times["document_wal_bytes"] = (self._wal_bytes() - wal_before) / driven
        looks: Mapping[str, Callable[[Session], object]] = {
            "open_work_ms": admission.open_work,
            "list_page_ms": lambda session: documents.list_page(session, tenant=TENANT, limit=50),
            "batch_counts_ms": lambda session: batches.count(session, self._batch_id),
            "take_due_ms": lambda session: outbox.take_due(
                session, Work.SPLIT, Priority.BULK, turns=Turns(), room=_ROOM, backoff_s=0
            ),
        }
        for name, look in looks.items():
            times[name] = _median_ms(partial(self._in_transaction, look), _LOOKS)
        return {name: round(value, 2) for name, value in times.items()}

    def finish_one(self) -> None:
        """Take one document from its upload to its result."""
        document = self._new_document()
        with self._database.transaction() as session:
            documents.insert(session, document, dispatch_after_s=_ENDLESS_S)
        self._split(document.id)
        with self._database.transaction() as session:
            chunk_ids = [chunk.id for chunk in chunks.list_of_document(session, document.id)]
        for chunk_id in chunk_ids:
            self._recognize(chunk_id)
        self._assemble(document.id)

    def add_queued(self, count: int) -> None:
        """Add documents that wait for their split, due at once."""
        rows = [self._new_document() for _ in range(count)]
        with self._database.transaction() as session:
            documents.insert_all(session, rows, dispatch_after_s=0)

    def _new_document(self) -> Document:
        document_id = new_id()
        options = OcrOptions()
        return Document(
            id=document_id,
            tenant=TENANT,
            source={"kind": "upload", "key": f"documents/{document_id}/source"},
            filename=f"register-{document_id}.pdf",
            media_type="application/pdf",
            size_bytes=250_000,
            sha256=document_id.hex * 2,
            options=options.model_dump(mode="json"),
            options_hash=options.digest(),
            batch_id=self._batch_id,
            priority=Priority.BULK,
        )

    def _split(self, document_id: UUID) -> None:
        with self._database.transaction() as session:
            claim = _given(documents.claim_split(session, document_id, **_CLAIM))
        planned = plan_chunks(range(self._page_count), chunk_pages=_CHUNK_PAGES)
        with self._database.transaction() as session:
            documents.start_recognizing(
                session,
                claim,
                page_count=self._page_count,
                chunks=planned,
                chord_grace_s=_ENDLESS_S,
            )

    def _recognize(self, chunk_id: UUID) -> None:
        with self._database.transaction() as session:
            claim = _given(chunks.claim(session, chunk_id, **_CLAIM))
        with self._database.transaction() as session:
            chunks.publish(
                session,
                claim,
                result_key=keys.chunk_pages_key(claim.document_id, chunk_id, 1),
                pages=[_record(index) for index in range(claim.page_start, claim.page_stop)],
                assemble_after_s=_ENDLESS_S,
            )

    def _assemble(self, document_id: UUID) -> None:
        with self._database.transaction() as session:
            claim = _given(documents.claim_assembly(session, document_id, generation=1, **_CLAIM))
        with self._database.transaction() as session:
            documents.finish(
                session,
                claim,
                state=DocumentState.SUCCEEDED,
                result_key=keys.result_key(document_id, 1),
                result_size_bytes=100_000,
                values={"pages_ok": self._page_count, "model_version": "ppocrv6-small@3d98a01baf"},
            )

    def _in_transaction(self, look: Callable[[Session], object]) -> None:
        with self._database.transaction() as session:
            look(session)

    def _wal_bytes(self) -> int:
        with self._database.transaction() as session:
            return usage.database_usage(session).wal_bytes


def _record(page_index: int) -> PageRecord:
    values = {
        "result_start": page_index * 20_000,
        "result_stop": page_index * 20_000 + 20_000,
        "model_version": "ppocrv6-small@3d98a01baf",
        "route": "ocr",
        "crops_found": 62,
        "crops_kept": 62,
        "line_count": 60,
        "mean_confidence": 0.9731,
        "rotation_deg": 0,
        "durations": _SECONDS,
    }
    return PageRecord(page_index, PageState.OK, values)


def _given(claim: Claim | None) -> Claim:
    if claim is None:
        raise BenchError("a row that nobody else knows could not be claimed")
    return claim


def _sizes(database: Database) -> dict[str, int]:
    with database.transaction() as session:
        return usage.table_bytes(session)


def _median_ms(call: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        started_s = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - started_s))
    return median(taken)
