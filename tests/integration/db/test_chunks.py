import threading
from uuid import UUID

import pytest

from db import chunks, documents, outbox, pages
from db.chunks import ChunkClaim
from db.engine import Database
from db.errors import StaleStateError
from db.outbox import Turns, Work
from db.states import DocumentState, PageState, Priority
from tests.support.rows import (
    DUE_NOW_S,
    add_recognizing_document,
    claim_chunk,
    publish_chunk,
)


def test_a_chunk_is_claimed_by_one_worker(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session)
        claim_chunk(session, planned[0].id)

        second = chunks.claim(session, planned[0].id, worker="b", lease_s=60, max_attempts=4)

    assert second is None


def test_a_chunk_of_a_finished_document_is_not_claimed(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        documents.move(
            session,
            document_id,
            source=DocumentState.RECOGNIZING,
            target=DocumentState.CANCELLED,
        )

        found = chunks.claim(session, planned[0].id, worker="a", lease_s=60, max_attempts=4)

    assert found is None


def test_a_late_attempt_publishes_nothing(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        zombie = claim_chunk(session, planned[0].id, lease_s=-1)
        publish_chunk(session, claim_chunk(session, planned[0].id))

    with database.transaction() as session, pytest.raises(StaleStateError):
        publish_chunk(session, zombie)

    with database.transaction() as session:
        rows = pages.list_of_document(session, document_id)
    assert [row.result_key for row in rows[:2]] == ["result-of-attempt-2"] * 2


def test_a_zombie_learns_of_it_when_it_renews(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session)
        zombie = claim_chunk(session, planned[0].id, lease_s=-1)
        claim_chunk(session, planned[0].id)

    with database.transaction() as session, pytest.raises(StaleStateError):
        chunks.renew(session, zombie, lease_s=60)


def is_due(database: Database, document_id: UUID) -> bool:
    with database.transaction() as session:
        return documents.get(session, document_id).dispatch_after is not None


def test_only_the_last_chunk_makes_the_document_due(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
    due = []

    for chunk in planned:
        with database.transaction() as session:
            publish_chunk(session, claim_chunk(session, chunk.id))
        due.append(is_due(database, document_id))

    assert due == [False, True]


def test_two_last_chunks_that_commit_together_make_the_document_due(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        claims = [claim_chunk(session, chunk.id) for chunk in planned]
    together = threading.Barrier(2)

    def finish(held: ChunkClaim) -> None:
        with database.transaction() as session:
            together.wait(timeout=10)
            publish_chunk(session, held)

    threads = [threading.Thread(target=finish, args=(held,)) for held in claims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert is_due(database, document_id)


@pytest.mark.parametrize(("earlier_attempts", "needs_a_message"), [(0, False), (1, True)])
def test_a_last_chunk_calls_for_the_assembly_when_a_failed_attempt_killed_the_chord(
    database: Database, *, earlier_attempts: int, needs_a_message: bool
) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session, page_count=1)
        for _ in range(earlier_attempts):
            claim_chunk(session, planned[0].id, lease_s=-1)

        answer = publish_chunk(session, claim_chunk(session, planned[0].id))

    assert answer is needs_a_message


@pytest.mark.parametrize("chord_grace_s", [None, DUE_NOW_S])
def test_a_last_chunk_that_came_outside_of_a_chord_calls_for_the_assembly(
    database: Database, chord_grace_s: float | None
) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session, page_count=1, chord_grace_s=chord_grace_s)
        outbox.take_due(
            session, Work.RECOGNIZE, Priority.INTERACTIVE, turns=Turns(), room=1, backoff_s=60
        )

        answer = publish_chunk(session, claim_chunk(session, planned[0].id))

    assert answer


def test_a_chunk_that_was_given_up_fails_its_pages_and_no_others(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        claim_chunk(session, planned[0].id, lease_s=-1)

        chunks.give_up(session, planned[0].id, code="worker_lost", detail="x")

    with database.transaction() as session:
        rows = pages.list_of_document(session, document_id)
    assert [(row.state, row.error_code) for row in rows] == [
        (PageState.FAILED, "worker_lost"),
        (PageState.FAILED, "worker_lost"),
        (PageState.QUEUED, None),
    ]


def test_a_chunk_that_somebody_works_on_is_not_given_up(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        held = claim_chunk(session, planned[0].id)

        chunks.give_up(session, planned[0].id, code="worker_lost", detail="x")
        publish_chunk(session, held)

    with database.transaction() as session:
        rows = pages.list_of_document(session, document_id)
    assert [row.state for row in rows] == [PageState.OK, PageState.OK, PageState.QUEUED]


def test_a_chunk_put_back_without_blame_keeps_its_attempts(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session)
        for _ in range(10):
            held = claim_chunk(session, planned[0].id)
            chunks.put_back(session, held, delay_s=0, is_excused=True)

        once_more = claim_chunk(session, planned[0].id)

    assert once_more.attempt == 11


def test_a_chunk_is_not_claimed_beyond_its_attempts(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session)
        for _ in range(4):
            claim_chunk(session, planned[0].id, lease_s=-1)

        fifth = chunks.claim(session, planned[0].id, worker="a", lease_s=60, max_attempts=4)

    assert fifth is None


def test_a_chunk_that_fails_from_within_fails_its_pages(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        held = claim_chunk(session, planned[0].id)

        chunks.fail(session, held, code="internal", detail="x")

    with database.transaction() as session:
        rows = pages.list_of_document(session, document_id)
    assert [row.error_code for row in rows] == ["internal", "internal", None]
