"""Long random sequences of everything that anybody does to a document, with workers that come late.

After every step each row that is not final has somebody who will look at it, and nobody looks at
one that is. What a worker or a sweep took earlier is used at any later time, as by a zombie.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import NoResultFound

from db import batch_retrying, cancelling, chunks, deleting, documents, events, outbox, retrying
from db.chunks import ChunkClaim, PageRecord
from db.documents import DocumentClaim
from db.engine import Database, Session
from db.errors import RowNotFoundError, StaleStateError
from db.ids import new_id
from db.models import Chunk, Document, Page
from db.outbox import DueWork, Turns, Work
from db.planned_chunks import PlannedChunk
from db.states import (
    FINAL_DOCUMENT_STATES,
    OPEN_CHUNK_STATES,
    OPEN_DOCUMENT_STATES,
    DocumentState,
    PageState,
    Priority,
)
from tests.support.backlog import add_batch
from tests.support.rows import TENANT, add_document

STEPS = 400
OPEN_DOCUMENTS = 2
WALKS_AT_ONCE = 5
MAX_ATTEMPTS = 2
WORKER: dict[str, Any] = {"worker": "test:1", "lease_s": 60, "max_attempts": MAX_ATTEMPTS}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, pool_size=WALKS_AT_ONCE)
    yield database
    database.dispose()


class Walk:
    """Who does what next, and what they hold; claims are kept long after they were lost."""

    def __init__(self, database: Database, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable, and no secret
        self.transaction = database.transaction
        with self.transaction() as session:
            self.batch_id = add_batch(session, tenant=TENANT)
        self.document_claims: list[DocumentClaim] = []
        self.chunk_claims: list[ChunkClaim] = []
        self.spent: list[DueWork] = []
        self.finished: Counter[tuple[UUID, int]] = Counter()
        self.next: Callable[[Session], None] | None = None

    def step(self) -> str:
        """Do one thing, and return its name."""
        act = self.next or self.random.choice([
            *[self.claim_document, self.claim_assembly, self.claim_chunk, self.claim_chunk],
            *[self.split, self.finish, self.publish, self.end_document, self.end_chunk],
            *[self.expire, self.expire, self.send, self.take_spent, self.end_spent],
            *[self.cancel, self.retry, self.retry_batch, self.delete],
        ])
        self.next = None
        try:
            with self.transaction() as session:
                is_open = Document.state.in_(OPEN_DOCUMENT_STATES)
                if len(session.scalars(select(Document.id).where(is_open)).all()) < OPEN_DOCUMENTS:
                    add_document(session, batch_id=self.random.choice([self.batch_id, None]))
                act(session)
        except (StaleStateError, RowNotFoundError, NoResultFound):
            pass
        return act.__name__

    def claim_document(self, session: Session) -> None:
        document_id = self._any_document(session, DocumentState.QUEUED, DocumentState.SPLITTING)
        if claim := documents.claim_split(session, document_id, **WORKER):
            self.document_claims.append(claim)
            self._go_on_with(self.split)

    def claim_assembly(self, session: Session) -> None:
        document_id = self._any_document(
            session, DocumentState.RECOGNIZING, DocumentState.ASSEMBLING
        )
        generation = session.get_one(Document, document_id).generation
        if generation > 1 and self.random.random() < 0.2:
            generation -= 1
        claim = documents.claim_assembly(session, document_id, generation=generation, **WORKER)
        if claim:
            self.document_claims.append(claim)
            self._go_on_with(self.finish)

    def claim_chunk(self, session: Session) -> None:
        found = session.scalars(select(Chunk.id).where(Chunk.state.in_(OPEN_CHUNK_STATES))).all()
        claim = chunks.claim(session, self.random.choice(found), **WORKER) if found else None
        if claim:
            self.chunk_claims.append(claim)
            self._go_on_with(self.publish)

    def split(self, session: Session) -> None:
        page_count, step = self.random.randint(1, 6), self.random.randint(1, 3)
        documents.start_recognizing(
            session,
            self._any(self.document_claims),
            page_count=page_count,
            chunks=[
                PlannedChunk(new_id(), start, min(start + step, page_count))
                for start in range(0, page_count, step)
            ],
            chord_grace_s=self.random.choice([None, 30]),
        )

    def end_document(self, session: Session) -> None:
        claim = self._any(self.document_claims)
        if self.random.random() < 0.2:
            documents.fail(session, claim, code="damaged", detail="x")
        else:
            excused = self.random.random() < 0.5
            documents.put_back(session, claim, delay_s=0, is_excused=excused)

    def finish(self, session: Session) -> None:
        claim = self._any(self.document_claims)
        states = set(
            session.scalars(select(Page.state).where(Page.document_id == claim.document_id))
        )
        documents.finish(
            session,
            claim,
            state=DocumentState.PARTLY_SUCCEEDED,
            result_key=f"{claim.generation}/result",
            result_size_bytes=1,
            values={},
        )
        assert PageState.QUEUED not in states
        self.finished[claim.document_id, claim.generation] += 1

    def publish(self, session: Session) -> None:
        claim = self._any(self.chunk_claims)
        chunks.publish(
            session,
            claim,
            result_key=f"{claim.chunk_id}/{claim.attempt}",
            pages=[
                PageRecord(index, self.random.choice([PageState.OK, PageState.FAILED]), {})
                for index in range(claim.page_start, claim.page_stop)
            ],
            assemble_after_s=0,
        )

    def end_chunk(self, session: Session) -> None:
        claim = self._any(self.chunk_claims)
        act = self.random.choice(["fail", "put back", "renew"])
        if act == "fail":
            chunks.fail(session, claim, code="internal", detail="x")
        elif act == "renew":
            chunks.renew(session, claim, lease_s=60)
        else:
            excused = self.random.random() < 0.5
            chunks.put_back(session, claim, delay_s=0, is_excused=excused)

    def retry_batch(self, session: Session) -> None:
        batch_retrying.request(session, self.batch_id, tenant=TENANT, cancelled_too=True)
        batch_retrying.retry_some(session, self.batch_id, limit=3)

    def expire(self, session: Session) -> None:
        """Let time pass: everything that waits is due, and every lease over."""
        for table in ("documents", "chunks"):
            session.execute(
                text(
                    f"UPDATE {table} SET dispatch_after = now() - interval '1 s',"  # noqa: S608 - two tables
                    " lease_expires_at = lease_expires_at - interval '1 h'"
                    f" WHERE id IN (SELECT id FROM {table} WHERE dispatch_after IS NOT NULL"
                    " FOR UPDATE SKIP LOCKED)"
                )
            )

    def send(self, session: Session) -> None:
        for work in Work:
            taken = outbox.take_due(
                session, work, Priority.INTERACTIVE, turns=Turns(), room=5, backoff_s=30
            )
            outbox.put_back_unsent(session, taken.due[2:])

    def take_spent(self, session: Session) -> None:
        for work in Work:
            self.spent += outbox.take_spent(
                session, work, max_attempts=MAX_ATTEMPTS, limit=9, backoff_s=30
            )

    def end_spent(self, session: Session) -> None:
        if not self.spent:
            return
        work = self.random.choice(self.spent[-6:])
        if work.work is not Work.RECOGNIZE:
            documents.give_up(
                session, work.id, code="worker_lost", detail="x", max_attempts=MAX_ATTEMPTS
            )
            return
        chunk = chunks.lock_spent(session, work.id, max_attempts=MAX_ATTEMPTS)
        if chunk is None:
            return
        if chunk.is_isolated:
            chunks.give_up(session, chunk.id, code="worker_lost", detail="x")
        else:
            chunks.isolate(session, chunk)

    def cancel(self, session: Session) -> None:
        if self.random.random() < 0.3:
            cancelling.cancel(session, self._any_document(session), tenant=TENANT)

    def retry(self, session: Session) -> None:
        retrying.retry(session, self._any_document(session), tenant=TENANT)

    def delete(self, session: Session) -> None:
        if self.random.random() < 0.1:
            deleting.mark(session, self._any_document(session), tenant=TENANT, writers_s=60)
        for deletion in deleting.take(session, limit=5, backoff_s=30):
            deleting.close(session, deletion)

    def _go_on_with(self, act: Callable[[Session], None]) -> None:
        """Let the next step be what a healthy worker does next, most of the time."""
        if self.random.random() < 0.6:
            self.next = act

    def _any_document(self, session: Session, *states: DocumentState) -> UUID:
        """Return one of the latest documents, in one of these states if there is one."""
        newest = session.execute(
            select(Document.id, Document.state).order_by(Document.id.desc()).limit(5)
        ).all()
        found: list[UUID] = [row.id for row in newest if row.state in states]
        return self.random.choice(found or [row.id for row in newest])

    def _any(self, claims: list[Any]) -> Any:
        """Return the latest claim, or one that may be long lost.

        Raises:
            StaleStateError: there is none.
        """
        if not claims:
            raise StaleStateError
        return self.random.choice(claims[-1:] if self.random.random() < 0.6 else claims[-8:])


def require_sound_rows(session: Session) -> None:
    for document in session.scalars(select(Document)):
        rows = chunks.list_of_document(session, document.id)
        open_chunks = [row for row in rows if row.state in OPEN_CHUNK_STATES]
        is_recognizing = document.state == DocumentState.RECOGNIZING
        assert all(row.dispatch_after for row in open_chunks)
        assert not any(row.dispatch_after for row in rows if row not in open_chunks)
        assert all(is_recognizing and row.generation == document.generation for row in open_chunks)
        if document.state in FINAL_DOCUMENT_STATES:
            assert document.dispatch_after is None
            assert document.finished_at is not None
        elif document.state in OPEN_DOCUMENT_STATES:
            assert document.finished_at is None
            assert (document.dispatch_after is None) is bool(open_chunks)
        else:
            assert document.dispatch_after is not None
        if is_recognizing:
            # A page waits exactly as long as one chunk is about to read it.
            covered = Counter(
                index for row in open_chunks for index in range(row.page_start, row.page_stop)
            )
            waiting = session.scalars(
                select(Page.page_index).where(
                    Page.document_id == document.id, Page.state == PageState.QUEUED
                )
            )
            assert covered == Counter(waiting)
        require_sound_events(session, document)


def require_sound_events(session: Session, document: Document) -> None:
    found = events.list_after(session, document, 0, limit=STEPS)
    assert [event.number for event in found] == list(range(1, len(found) + 1))
    assert found[-1].generation == document.generation
    if document.state in FINAL_DOCUMENT_STATES:
        assert found[-1].type == document.state
    elif document.state == DocumentState.DELETING:
        assert found[-1].type == "deleted"
    after_an_end = [now for before, now in pairwise(found) if before.type in events.ENDING]
    assert {event.type for event in after_an_end} <= {"retried", "deleted"}


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_no_row_is_left_alone(database: Database, seed: int) -> None:
    walk = Walk(database, seed)
    done: list[str] = []
    for _ in range(STEPS):
        done.append(walk.step())
        with database.transaction() as session:
            try:
                require_sound_rows(session)
            except AssertionError as error:
                raise AssertionError(f"after {done[-25:]}") from error
    assert set(walk.finished.values()) == {1}


def test_many_at_once_leave_no_row_alone_and_wait_for_each_other_in_one_order(
    database: Database,
) -> None:
    def walk_on(seed: int) -> Walk:
        walk = Walk(database, seed)
        for _ in range(STEPS // 2):
            walk.step()  # a deadlock would be an error
        return walk

    with ThreadPoolExecutor(WALKS_AT_ONCE) as threads:
        walks = list(threads.map(walk_on, range(WALKS_AT_ONCE)))

    with database.transaction() as session:
        require_sound_rows(session)
    finished = sum((walk.finished for walk in walks), Counter())
    assert set(finished.values()) == {1}


@pytest.mark.parametrize("seed", range(2))
def test_documents_end_even_when_every_worker_dies(database: Database, seed: int) -> None:
    walk = Walk(database, seed)
    for _ in range(STEPS // 2):
        walk.step()

    # Each try dies; then comes what ends those that have none left.
    for _ in range(4 * MAX_ATTEMPTS):
        with database.transaction() as session:
            for document in session.scalars(select(Document)).all():
                documents.claim_split(session, document.id, **WORKER)
                documents.claim_assembly(
                    session, document.id, generation=document.generation, **WORKER
                )
            for chunk_id in session.scalars(select(Chunk.id)).all():
                chunks.claim(session, chunk_id, **WORKER)
            walk.expire(session)
        with database.transaction() as session:
            walk.spent = []
            walk.take_spent(session)
        for work in walk.spent:
            walk.spent = [work]
            with database.transaction() as session:
                walk.end_spent(session)

    with database.transaction() as session:
        require_sound_rows(session)
        states = set(session.scalars(select(Document.state)))
    assert states <= {*FINAL_DOCUMENT_STATES, DocumentState.DELETING}
