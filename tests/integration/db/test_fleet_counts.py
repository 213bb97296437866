"""What is counted of the system, row by row."""

from uuid import UUID

import pytest
from sqlalchemy import text

from db import chunks, documents
from db.engine import Database
from db.fleet_counts import FleetCounts, count_fleet
from db.outbox import Work
from db.states import DocumentState, Priority
from tests.support.rows import (
    add_document,
    add_recognizing_document,
    claim_chunk,
    claim_split,
    publish_chunk,
)


def counted(database: Database) -> FleetCounts:
    with database.transaction() as session:
        return count_fleet(session, window_s=300)


def make_older(database: Database, document_id: UUID, *, by_s: int) -> None:
    with database.transaction() as session:
        session.execute(
            text(
                "UPDATE documents SET created_at = created_at - make_interval(secs => :s)"
                " WHERE id = :id"
            ),
            {"s": by_s, "id": document_id},
        )


def test_an_empty_system_has_zeros_everywhere(database: Database) -> None:
    counts = counted(database)

    assert {work: queue.pages for work, queue in counts.queues.items()} == dict.fromkeys(Work, 0)
    assert {age for queue in counts.queues.values() for age in queue.oldest_s.values()} == {0.0}
    assert (counts.pages_in_flight, counts.documents_from_cache) == (0, 0)
    assert set(counts.finished_pages.values()) == {0}
    assert (counts.webhooks_waiting, counts.webhooks_oldest_s) == (0, 0.0)
    assert set(counts.open_documents) == {"queued", "splitting", "recognizing", "assembling"}
    assert set(counts.finished_documents) == {
        "succeeded",
        "partly_succeeded",
        "failed",
        "cancelled",
    }


def test_what_waits_to_be_split_counts_with_the_age_of_the_oldest_of_its_priority(
    database: Database,
) -> None:
    with database.transaction() as session:
        old = add_document(session, page_estimate=3)
        add_document(session, page_estimate=4)
        add_document(session, page_estimate=5, priority=Priority.BULK)
    make_older(database, old, by_s=100)

    queue = counted(database).queues[Work.SPLIT]

    assert queue.pages == 12
    assert queue.oldest_s[Priority.INTERACTIVE] == pytest.approx(100, abs=5)
    assert 0 <= queue.oldest_s[Priority.BULK] < 5


def test_a_document_that_is_being_split_waits_no_more(database: Database) -> None:
    with database.transaction() as session:
        claim_split(session, add_document(session))

    counts = counted(database)

    assert counts.queues[Work.SPLIT].pages == 0
    assert counts.open_documents[DocumentState.SPLITTING] == 1


def test_chunks_wait_or_are_in_flight(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session, page_count=5, chunk_pages=2)
        claim_chunk(session, planned[0].id)

    counts = counted(database)

    assert (counts.queues[Work.RECOGNIZE].pages, counts.pages_in_flight) == (3, 2)
    assert 0 <= counts.queues[Work.RECOGNIZE].oldest_s[Priority.INTERACTIVE] < 60


def test_the_age_of_a_chunk_is_read_from_its_id(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session, page_count=1)
        milliseconds = session.scalar(text("SELECT (extract(epoch FROM now()) * 1000)::bigint"))
        an_hour_ago = UUID(
            int=(int(milliseconds or 0) - 3_600_000 << 80) | planned[0].id.int % 2**80
        )
        session.execute(text("UPDATE chunks SET id = :id"), {"id": an_hour_ago})

    oldest_s = counted(database).queues[Work.RECOGNIZE].oldest_s

    assert oldest_s[Priority.INTERACTIVE] == pytest.approx(3_600, abs=5)


def test_a_document_whose_pages_are_read_waits_to_be_assembled(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session, page_count=2, chunk_pages=2)
        publish_chunk(session, claim_chunk(session, planned[0].id))

    counts = counted(database)

    assert counts.queues[Work.ASSEMBLE].pages > 0
    assert counts.queues[Work.RECOGNIZE].pages == 0


def test_what_ended_lately_counts_by_state_and_outcome(database: Database) -> None:
    with database.transaction() as session:
        failed, cached, older = (add_document(session) for _ in range(3))
        for document_id in (failed, cached, older):
            documents.move(
                session,
                document_id,
                source=DocumentState.QUEUED,
                target=DocumentState.FAILED,
            )
        session.execute(text("UPDATE documents SET finished_at = now()"))
        session.execute(
            text(
                "UPDATE documents SET pages_ok = 3, pages_failed = 1, pages_skipped = 2,"
                " pages_cached = 1 WHERE id = :id"
            ),
            {"id": failed},
        )
        session.execute(
            text(
                "UPDATE documents SET state = 'succeeded', pages_ok = 5, cached_from = :other"
                " WHERE id = :id"
            ),
            {"id": cached, "other": failed},
        )
        session.execute(
            text("UPDATE documents SET finished_at = now() - interval '10 minutes' WHERE id = :id"),
            {"id": older},
        )

    counts = counted(database)

    assert counts.finished_documents == {
        "cancelled": 0,
        "failed": 1,
        "partly_succeeded": 0,
        "succeeded": 1,
    }
    assert counts.finished_pages == {"ok": 8, "failed": 1, "skipped": 2, "cached": 6}
    assert counts.documents_from_cache == 1


def test_a_chunk_that_nobody_has_to_look_at_counts_nowhere(database: Database) -> None:
    with database.transaction() as session:
        _, planned = add_recognizing_document(session, page_count=2, chunk_pages=2)
        claim = claim_chunk(session, planned[0].id)
        chunks.fail(session, claim, code="internal", detail="")

    counts = counted(database)

    assert (counts.queues[Work.RECOGNIZE].pages, counts.pages_in_flight) == (0, 0)
