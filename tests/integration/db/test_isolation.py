"""A chunk that nobody could finish becomes chunks of one page each, once, whoever interferes."""

import functools
import threading
from uuid import UUID

import pytest

from db import chunks, documents, outbox, pages
from db.chunks import ChunkClaim
from db.engine import Database, Session
from db.errors import StaleStateError
from db.models import Chunk
from db.outbox import Turns, Work
from db.states import ChunkState, DocumentState, PageState, Priority
from tests.support.rows import (
    add_recognizing_document,
    claim_chunk,
    publish_chunk,
)

MAX_ATTEMPTS = 2

claim = functools.partial(claim_chunk, max_attempts=MAX_ATTEMPTS)


def spend(session: Session, chunk_id: UUID) -> ChunkClaim:
    """Let all workers die over a chunk, and return the last one's claim."""
    return [claim(session, chunk_id, lease_s=-1) for _ in range(MAX_ATTEMPTS)][-1]


def isolate(session: Session, chunk_id: UUID) -> bool:
    spent = chunks.lock_spent(session, chunk_id, max_attempts=MAX_ATTEMPTS)
    if spent is not None:
        chunks.isolate(session, spent)
    return spent is not None


def rows_of(session: Session, document_id: UUID) -> list[Chunk]:
    return list(chunks.list_of_document(session, document_id))


def test_each_page_of_an_isolated_chunk_is_a_chunk_that_is_due(database: Database) -> None:
    with database.transaction() as session:
        document_id, (first, other) = add_recognizing_document(session, tenant="a")
        spend(session, first.id)

        isolate(session, first.id)
        due = outbox.take_due(
            session, Work.RECOGNIZE, Priority.INTERACTIVE, turns=Turns(), room=9, backoff_s=60
        ).due

    assert [(work.page_start, work.page_stop) for work in due] == [(0, 1), (1, 2)]
    with database.transaction() as session:
        states = {row.id: row.state for row in rows_of(session, document_id)}
    assert states[first.id] == ChunkState.ISOLATED
    assert states[other.id] == ChunkState.QUEUED
    assert len(states) == 4


def test_a_chunk_of_one_page_starts_over_alone(database: Database) -> None:
    with database.transaction() as session:
        document_id, (only,) = add_recognizing_document(session, page_count=1)
        spend(session, only.id)

        isolate(session, only.id)
        tries = [claim(session, only.id, lease_s=-1) for _ in range(MAX_ATTEMPTS)]

    assert [(held.is_isolated, held.is_last_try) for held in tries] == [(True, False), (True, True)]
    with database.transaction() as session:
        assert [row.id for row in rows_of(session, document_id)] == [only.id]


def test_only_an_isolated_page_has_a_last_try(database: Database) -> None:
    with database.transaction() as session:
        _, (first, _) = add_recognizing_document(session)

        last = spend(session, first.id)

    assert not last.is_last_try


def test_the_only_try_of_an_isolated_page_is_not_its_last(database: Database) -> None:
    with database.transaction() as session:
        _, (only,) = add_recognizing_document(session, page_count=1)
        spend(session, only.id)
        isolate(session, only.id)

        held = chunks.claim(session, only.id, worker="a", lease_s=60, max_attempts=1)

    assert held is not None
    assert not held.is_last_try


def test_a_try_that_is_excused_is_not_the_last(database: Database) -> None:
    with database.transaction() as session:
        _, (only,) = add_recognizing_document(session, page_count=1)
        spend(session, only.id)
        isolate(session, only.id)
        chunks.put_back(
            session,
            claim(session, only.id),
            delay_s=0,
            is_excused=True,
        )

        held = claim(session, only.id)

    assert not held.is_last_try


def test_two_sweeps_at_once_isolate_a_chunk_once(database: Database) -> None:
    with database.transaction() as session:
        document_id, (first, _) = add_recognizing_document(session)
        spend(session, first.id)
    together = threading.Barrier(2)
    did_isolate: list[bool] = []

    def sweep() -> None:
        with database.transaction() as session:
            together.wait(timeout=10)
            did_isolate.append(isolate(session, first.id))

    threads = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(did_isolate) == [False, True]
    with database.transaction() as session:
        assert len(rows_of(session, document_id)) == 4


def test_a_sweep_that_was_slow_does_not_end_a_page_that_started_over(database: Database) -> None:
    with database.transaction() as session:
        _, (only,) = add_recognizing_document(session, page_count=1)
        spend(session, only.id)
        isolate(session, only.id)

        spent = chunks.lock_spent(session, only.id, max_attempts=MAX_ATTEMPTS)

    assert spent is None


@pytest.mark.parametrize("page_count", [1, 2])
def test_a_zombie_publishes_nothing_into_what_was_isolated(
    database: Database, page_count: int
) -> None:
    with database.transaction() as session:
        document_id, (chunk,) = add_recognizing_document(session, page_count=page_count)
        zombie = spend(session, chunk.id)
        isolate(session, chunk.id)

    with database.transaction() as session, pytest.raises(StaleStateError):
        publish_chunk(session, zombie)
    with database.transaction() as session, pytest.raises(StaleStateError):
        chunks.note_failure(session, zombie, "gpu_out_of_memory")

    with database.transaction() as session:
        states = {row.state for row in pages.list_of_document(session, document_id)}
    assert states == {PageState.QUEUED}


def test_a_chunk_that_somebody_works_on_is_not_isolated(database: Database) -> None:
    with database.transaction() as session:
        _, (first, _) = add_recognizing_document(session)
        spend(session, first.id)
        session.get_one(Chunk, first.id).attempt -= 1
        session.flush()
        held = claim(session, first.id)

        was_isolated = isolate(session, first.id)
        publish_chunk(session, held)

    assert not was_isolated


def test_the_last_of_all_pages_ends_the_document_without_a_chord(database: Database) -> None:
    with database.transaction() as session:
        document_id, (first, other) = add_recognizing_document(session)
        spend(session, first.id)
        isolate(session, first.id)
        alone = [row.id for row in rows_of(session, document_id) if row.is_isolated]

        calls = [
            publish_chunk(session, claim(session, chunk_id))
            for chunk_id in (alone[0], other.id, alone[1])
        ]

        document = documents.get(session, document_id)
        session.refresh(document)

    assert calls == [False, False, True]
    assert not document.by_chord
    assert document.dispatch_after is not None


def test_a_page_that_fails_alone_fails_no_other(database: Database) -> None:
    with database.transaction() as session:
        document_id, (first, other) = add_recognizing_document(session)
        spend(session, first.id)
        isolate(session, first.id)
        good, poison = (row.id for row in rows_of(session, document_id) if row.is_isolated)
        spend(session, poison)
        chunks.give_up(session, poison, code="page_crashed", detail="x")
        for chunk_id in (good, other.id):
            publish_chunk(session, claim(session, chunk_id))

        rows = pages.list_of_document(session, document_id)

    assert [row.error_code for row in rows] == [None, "page_crashed", None]
    assert [row.state for row in rows] == [PageState.OK, PageState.FAILED, PageState.OK]


def test_a_spent_chunk_of_a_document_that_went_on_without_it_is_ended(
    database: Database,
) -> None:
    with database.transaction() as session:
        document_id, (first, _) = add_recognizing_document(session)
        spend(session, first.id)
        documents.move(
            session,
            document_id,
            source=DocumentState.RECOGNIZING,
            target=DocumentState.CANCELLED,
        )

        was_isolated = isolate(session, first.id)

        row = session.get_one(Chunk, first.id)
        session.refresh(row)

    assert not was_isolated
    assert (row.state, row.dispatch_after) == (ChunkState.CANCELLED, None)


def test_an_attempt_starts_without_what_the_one_before_failed_with(database: Database) -> None:
    with database.transaction() as session:
        _, (first, _) = add_recognizing_document(session)
        held = claim(session, first.id)
        chunks.note_failure(session, held, "gpu_out_of_memory")
        chunks.put_back(session, held, delay_s=0, is_excused=False)
        row = session.get_one(Chunk, first.id)
        session.refresh(row)
        noted = row.error_code

        claim(session, first.id)
        session.refresh(row)

    assert (noted, row.error_code) == ("gpu_out_of_memory", None)
