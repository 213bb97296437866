"""Events are written with the move they tell of, once, and in an order that can be resumed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import UUID

import pytest
from sqlalchemy import text

from db import cancelling, chunks, deleting, documents, events, retrying
from db.engine import Database, Session
from db.events import Event
from db.models import Document
from db.states import DocumentState
from tests.support.rows import (
    TENANT,
    add_document,
    add_recognizing_document,
    claim_chunk,
    claim_split,
    publish_chunk,
)


def told(session: Session, document_id: UUID, *, after: int = 0) -> list[Event]:
    document = session.get_one(Document, document_id)
    return list(events.list_after(session, document, after, limit=100))


def types_of(session: Session, document_id: UUID) -> list[str]:
    return [event.type.value for event in told(session, document_id)]


def rows_of(session: Session, document_id: UUID) -> int:
    query = text("SELECT count(*) FROM document_events WHERE document_id = :id")
    return int(session.execute(query, {"id": document_id}).scalar_one())


def finish(session: Session, document_id: UUID, *, pages_ok: int = 0) -> None:
    generation = session.get_one(Document, document_id, populate_existing=True).generation
    claim = documents.claim_assembly(
        session, document_id, generation=generation, worker="a", lease_s=60, max_attempts=4
    )
    assert claim is not None
    documents.finish(
        session,
        claim,
        state=DocumentState.SUCCEEDED,
        result_key="r",
        result_size_bytes=1,
        values={"pages_ok": pages_ok},
    )


def set_age(session: Session, hours: int) -> None:
    """Say that everything was told so many hours ago; fewer than none: it still is to be."""
    session.execute(
        text("UPDATE document_events SET created_at = now() - make_interval(hours => :hours)"),
        {"hours": hours},
    )


def test_a_letter_of_one_page_pays_one_row(database: Database) -> None:
    with database.transaction() as session:
        document_id, (chunk,) = add_recognizing_document(session, page_count=1)
        publish_chunk(session, claim_chunk(session, chunk.id))
        finish(session, document_id, pages_ok=1)

    with database.transaction() as session:
        accepted, succeeded = told(session, document_id)
        assert rows_of(session, document_id) == 1
    assert (accepted.number, accepted.type) == (1, "accepted")
    assert (succeeded.number, succeeded.type, succeeded.page_count) == (2, "succeeded", 1)
    assert (succeeded.pages_ok, succeeded.error_code) == (1, None)


def test_progress_is_told_in_pages_and_not_more_often_than_it_may(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=8, chunk_pages=2)
        set_age(session, -1)
    for number, chunk in enumerate(planned):
        with database.transaction() as session:
            if number == 2:
                set_age(session, 1)
            publish_chunk(session, claim_chunk(session, chunk.id))

    with database.transaction() as session:
        found = told(session, document_id)
    # After the last chunk it is the end that is told next.
    assert [event.type for event in found] == ["accepted", "recognizing", "progress"]
    assert (found[2].page_count, found[2].pages_ok) == (8, 6)


def test_pages_that_were_given_up_are_progress_too(database: Database) -> None:
    with database.transaction() as session:
        document_id, (first, _) = add_recognizing_document(session)
        set_age(session, 1)
        chunks.give_up(session, first.id, code="worker_lost", detail="x")

        progress = told(session, document_id)[-1]
    assert (progress.type, progress.pages_failed) == ("progress", 2)


def test_work_that_is_put_back_is_nothing_to_tell(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim = claim_split(session, document_id)
        documents.put_back(session, claim, delay_s=0, is_excused=True)

        assert types_of(session, document_id) == ["accepted"]


@pytest.mark.parametrize("end", ["fail", "give up", "cancel"])
def test_however_a_document_ends_it_is_told_with_the_reason(database: Database, end: str) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim = claim_split(session, document_id, lease_s=-1)
        if end == "fail":
            documents.fail(session, claim, code="damaged", detail="x")
        elif end == "give up":
            documents.give_up(session, document_id, code="lost", detail="x", max_attempts=1)
        else:
            cancelling.cancel(session, document_id, tenant=TENANT)

        last = told(session, document_id)[-1]
    expected = {"fail": "failed/damaged", "give up": "failed/lost", "cancel": "cancelled/cancelled"}
    assert f"{last.type}/{last.error_code}" == expected[end]


def test_a_retry_and_its_end_follow_the_first_end(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        cancelling.cancel(session, document_id, tenant=TENANT)
        retrying.retry(session, document_id, tenant=TENANT)
        cancelling.cancel(session, document_id, tenant=TENANT)

        found = told(session, document_id)
    assert [event.type for event in found] == ["accepted", "cancelled", "retried", "cancelled"]
    assert [event.number for event in found] == [1, 2, 3, 4]
    assert [event.generation for event in found] == [1, 1, 2, 2]


def test_a_retry_says_what_stays_read(database: Database) -> None:
    with database.transaction() as session:
        document_id, (first, _) = add_recognizing_document(session)
        publish_chunk(session, claim_chunk(session, first.id))
        cancelling.cancel(session, document_id, tenant=TENANT)
        retrying.retry(session, document_id, tenant=TENANT)

        retried = told(session, document_id)[-1]
    assert (retried.type, retried.page_count, retried.pages_ok) == ("retried", 3, 2)


def test_a_document_that_is_final_from_the_start_is_told_as_ended(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, state="succeeded", result_key="of-another")

        assert types_of(session, document_id) == ["accepted", "succeeded"]


def test_a_move_that_is_rolled_back_was_never_told(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
    with suppress(ZeroDivisionError), database.transaction() as session:
        cancelling.cancel(session, document_id, tenant=TENANT)
        raise ZeroDivisionError

    with database.transaction() as session:
        assert types_of(session, document_id) == ["accepted"]


def test_a_resumed_reader_gets_what_it_has_not_seen(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        cancelling.cancel(session, document_id, tenant=TENANT)
        other = add_document(session)

        assert [event.number for event in told(session, document_id, after=1)] == [2]
        assert told(session, document_id, after=2) == []
        found = events.list_of_many(session, {document_id: 1, other: 1}, limit=10)
    assert {key: [event.number for event in value] for key, value in found.items()} == {
        document_id: [2]
    }


def test_events_go_with_their_document_whose_end_is_told_even_then(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        deleting.mark(session, document_id, tenant=TENANT, writers_s=0)
        (told_first,) = events.list_of_many(session, {document_id: 1}, limit=10)[document_id]
    with database.transaction() as session:
        for deletion in deleting.take(session, limit=1, backoff_s=30):
            deleting.close(session, deletion)

    with database.transaction() as session:
        assert rows_of(session, document_id) == 0
        (told_later,) = events.list_of_many(session, {document_id: 1}, limit=10)[document_id]
    assert (told_first.number, told_first.type) == (2, "deleted")
    assert (told_later.number, told_later.type) == (2, "deleted")


def test_an_event_is_never_seen_before_one_of_a_lower_number(database: Database) -> None:
    """The first to get a number commits first: a reader that goes by numbers misses nothing."""
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=6, chunk_pages=1)
    stop = threading.Event()
    gaps: list[list[int]] = []

    def read() -> None:
        while not stop.is_set():
            with database.transaction() as session:
                numbers = [event.number for event in told(session, document_id)]
            if numbers != list(range(1, len(numbers) + 1)):
                gaps.append(numbers)

    def publish(chunk_id: UUID) -> None:
        with database.transaction() as session:
            claim = claim_chunk(session, chunk_id)
        with database.transaction() as session:
            publish_chunk(session, claim)
            events.note_progress(session, document_id, every_s=0)

    with ThreadPoolExecutor(4) as threads:
        reading = threads.submit(read)
        list(threads.map(publish, [chunk.id for chunk in planned]))
        stop.set()
        reading.result()

    with database.transaction() as session:
        numbers = [event.number for event in told(session, document_id)]
    assert len(numbers) >= 2 + len(planned)
    assert numbers == list(range(1, len(numbers) + 1))
    assert gaps == []
