from uuid import UUID

from db import chunks, documents, outbox
from db.engine import Database, Session
from db.ids import new_id
from db.models import Chunk
from db.outbox import DueWork, Turns, Work
from db.planned_chunks import PlannedChunk
from db.states import DocumentState, Priority
from tests.support.rows import (
    DUE_NOW_S,
    add_document,
    add_recognizing_document,
    claim_split,
)


def take(session: Session, work: Work, *, room: int = 10, backoff_s: float = 30) -> list[DueWork]:
    """Take rows of any priority, as the first round of a sweep does."""
    return [
        due
        for priority in Priority
        for due in outbox.take_due(
            session, work, priority, turns=Turns(), room=room, backoff_s=backoff_s
        ).due
    ]


def give_up(session: Session, document_id: UUID) -> bool:
    """Give a document up that may be tried once."""
    return documents.give_up(session, document_id, code="worker_lost", detail="x", max_attempts=1)


def test_a_queued_document_without_a_message_is_due_for_its_split(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, dispatch_after_s=DUE_NOW_S)

        due = take(session, Work.SPLIT)

    assert [(work.work, work.id) for work in due] == [(Work.SPLIT, document_id)]


def test_due_work_has_the_priority_of_its_document(database: Database) -> None:
    with database.transaction() as session:
        for priority in Priority:
            add_document(session, dispatch_after_s=DUE_NOW_S, priority=priority)
            add_recognizing_document(session, chord_grace_s=None, priority=priority)

        chunks_due = take(session, Work.RECOGNIZE)
        documents_due = take(session, Work.SPLIT)

    assert {work.priority for work in documents_due} == set(Priority)
    assert sorted(work.priority for work in chunks_due) == ["bulk"] * 2 + ["interactive"] * 2


def test_what_was_just_sent_is_left_alone(database: Database) -> None:
    with database.transaction() as session:
        add_document(session, dispatch_after_s=DUE_NOW_S)
        take(session, Work.SPLIT)

        again = take(session, Work.SPLIT)

    assert again == []


def test_a_claimed_document_is_due_when_its_lease_ends(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim_split(session, document_id, lease_s=-1)

        due = take(session, Work.SPLIT)

    assert [(work.id, work.attempts) for work in due] == [(document_id, 1)]


def test_a_chunk_whose_worker_died_is_due_with_its_pages(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        chunks.claim(session, planned[1].id, worker="a", lease_s=-1, max_attempts=4)

        due = take(session, Work.RECOGNIZE)

    assert [(work.id, work.document_id, work.page_start, work.page_stop) for work in due] == [
        (planned[1].id, document_id, 2, 3)
    ]


def test_a_document_whose_chunks_are_done_is_due_for_its_assembly(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=1)
        chunks.give_up(session, planned[0].id, code="worker_lost", detail="x")

        due = take(session, Work.ASSEMBLE)

    assert [(work.work, work.id) for work in due] == [(Work.ASSEMBLE, document_id)]


def test_two_sweeps_at_once_share_the_rows(database: Database) -> None:
    with database.transaction() as session:
        for _ in range(6):
            add_document(session, dispatch_after_s=DUE_NOW_S)

    with database.transaction() as one, database.transaction() as other:
        first = take(one, Work.SPLIT, room=4, backoff_s=30)
        second = take(other, Work.SPLIT, room=4, backoff_s=30)

    assert len({work.id for work in [*first, *second]}) == 6


def test_the_wait_doubles_with_every_delivery(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, dispatch_after_s=DUE_NOW_S)
        document = documents.get(session, document_id)
        document.deliveries = 4
        session.flush()

        take(session, Work.SPLIT, room=1, backoff_s=1)
        session.refresh(document)

    assert document.dispatch_after is not None
    assert 15 < (document.dispatch_after - document.created_at).total_seconds() < 17


def test_a_document_that_nobody_could_split_is_given_up(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim_split(session, document_id, lease_s=-1)

        give_up(session, document_id)

    with database.transaction() as session:
        document = documents.get(session, document_id)
    assert (document.state, document.error_code) == (DocumentState.FAILED, "worker_lost")


def test_a_document_that_somebody_works_on_is_not_given_up(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim_split(session, document_id)

        was_given_up = give_up(session, document_id)

    assert not was_given_up


def test_a_document_that_was_split_after_all_is_not_given_up(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        slow = claim_split(session, document_id, lease_s=-1)
        chunk = PlannedChunk(new_id(), 0, 1)
        documents.start_recognizing(session, slow, page_count=1, chunks=[chunk], chord_grace_s=None)

        # By a sweep that found it before.
        was_given_up = give_up(session, document_id)

    assert not was_given_up
    with database.transaction() as session:
        assert documents.get(session, document_id).state == DocumentState.RECOGNIZING


def test_what_could_not_be_sent_is_due_again_without_a_longer_wait(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, dispatch_after_s=DUE_NOW_S)
        due = take(session, Work.SPLIT, room=10, backoff_s=3_600)

        outbox.put_back_unsent(session, due)

        document = documents.get(session, document_id)
        session.refresh(document)
        deliveries = document.deliveries
        again = take(session, Work.SPLIT, room=10, backoff_s=3_600)
    assert deliveries == 0
    assert [work.id for work in again] == [document_id]


def test_a_row_that_somebody_is_changing_is_not_waited_for(database: Database) -> None:
    with database.transaction() as session:
        _, (first, second) = add_recognizing_document(session, chord_grace_s=DUE_NOW_S)
        unsent = take(session, Work.RECOGNIZE, room=10, backoff_s=3_600)

    with database.transaction() as changing, database.transaction() as session:
        claim = chunks.claim(changing, first.id, worker="a", lease_s=60, max_attempts=4)
        outbox.put_back_unsent(session, unsent)

    assert claim is not None
    with database.transaction() as session:
        due = take(session, Work.RECOGNIZE)
    assert [work.id for work in due] == [second.id]


def test_a_document_that_is_taken_up_again_and_again_waits_no_longer(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, dispatch_after_s=DUE_NOW_S)
        document = documents.get(session, document_id)
        document.deliveries = 20
        session.flush()
        documents.put_back(session, claim_split(session, document_id), delay_s=-1, is_excused=True)

        take(session, Work.SPLIT, backoff_s=10)
        session.refresh(document)

    assert document.dispatch_after is not None
    assert (document.dispatch_after - document.created_at).total_seconds() < 60


def test_a_chunk_that_is_taken_up_again_and_again_waits_no_longer(database: Database) -> None:
    with database.transaction() as session:
        document_id, (only,) = add_recognizing_document(session, page_count=1)
        session.get_one(Chunk, only.id).deliveries = 20
        session.flush()
        for _ in range(2):
            claim = chunks.claim(session, only.id, worker="a", lease_s=60, max_attempts=4)
            assert claim is not None
            chunks.put_back(session, claim, delay_s=-1, is_excused=True)

        take(session, Work.RECOGNIZE, backoff_s=10)

        chunk = session.get_one(Chunk, only.id)
        session.refresh(chunk)
        created_at = documents.get(session, document_id).created_at

    assert chunk.dispatch_after is not None
    assert (chunk.dispatch_after - created_at).total_seconds() < 60


def test_an_unsent_chunk_is_due_again_too(database: Database) -> None:
    with database.transaction() as session:
        add_recognizing_document(session, chord_grace_s=DUE_NOW_S)
        due = take(session, Work.RECOGNIZE, room=10, backoff_s=3_600)

        outbox.put_back_unsent(session, due)

        again = take(session, Work.RECOGNIZE, room=10, backoff_s=3_600)
    assert {work.id for work in again} == {work.id for work in due}


def test_a_chunk_that_was_claimed_meanwhile_keeps_its_lease(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session, page_count=1, chord_grace_s=DUE_NOW_S)
        due = take(session, Work.RECOGNIZE, room=10, backoff_s=3_600)
        chunks.claim(session, planned[0].id, worker="a", lease_s=60, max_attempts=4)

        outbox.put_back_unsent(session, due)

        again = take(session, Work.RECOGNIZE, room=10, backoff_s=3_600)
    assert again == []
