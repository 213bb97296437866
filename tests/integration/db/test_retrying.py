"""Retrying against everybody else who changes the same rows."""

import threading
from uuid import UUID

import pytest

from db import admission, cancelling, chunks, documents, pages, retrying
from db.engine import Database
from db.errors import RowNotFoundError, StaleStateError
from db.retrying import Retry
from db.states import ChunkState, DocumentState, PageState, Priority
from tests.support.rows import (
    TENANT,
    add_document,
    add_recognizing_document,
    claim_chunk,
    claim_split,
    publish_chunk,
)


def retry(database: Database, document_id: UUID) -> Retry:
    with database.transaction() as session:
        return retrying.retry(session, document_id, tenant=TENANT)


def cancel(database: Database, document_id: UUID) -> None:
    with database.transaction() as session:
        cancelling.cancel(session, document_id, tenant=TENANT)


def test_a_document_that_failed_in_its_split_is_queued_again(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        documents.fail(session, claim_split(session, document_id), code="damaged", detail="x")

    outcome = retry(database, document_id)

    with database.transaction() as session:
        document = documents.get(session, document_id)
    with database.transaction() as session:
        held = claim_split(session, document_id)
    assert outcome is Retry.STARTED
    assert (document.state, document.generation) == (DocumentState.QUEUED, 2)
    assert (document.error_code, document.finished_at) == (None, None)
    assert document.attempt - document.excused == 0
    assert document.dispatch_after is not None
    assert held.generation == 2


def test_a_cancelled_document_goes_on_with_the_pages_that_were_not_read(
    database: Database,
) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=6)
        publish_chunk(session, claim_chunk(session, planned[1].id), result_key="first")
    cancel(database, document_id)

    retry(database, document_id)

    with database.transaction() as session:
        rows = pages.list_of_document(session, document_id)
        new = [c for c in chunks.list_of_document(session, document_id) if c.generation == 2]
    assert [(row.state, row.result_key, row.generation) for row in rows] == [
        *[(PageState.QUEUED, None, 2)] * 2,
        *[(PageState.OK, "first", 1)] * 2,
        *[(PageState.QUEUED, None, 2)] * 2,
    ]
    assert [(c.page_start, c.page_stop, c.state) for c in new] == [
        (0, 2, ChunkState.QUEUED),
        (4, 6, ChunkState.QUEUED),
    ]
    assert all(chunk.dispatch_after is not None for chunk in new)


def test_a_document_whose_assembly_alone_failed_is_assembled_again(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=1)
        publish_chunk(session, claim_chunk(session, planned[0].id), result_key="first")
    cancel(database, document_id)

    retry(database, document_id)

    with database.transaction() as session:
        stale = documents.claim_assembly(
            session, document_id, generation=1, worker="a", lease_s=9, max_attempts=4
        )
        due = documents.get(session, document_id).dispatch_after
        held = documents.claim_assembly(
            session, document_id, generation=2, worker="a", lease_s=9, max_attempts=4
        )
    assert (stale, due is not None) == (None, True)
    assert held is not None


def test_a_late_worker_of_the_earlier_generation_publishes_nothing(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=2)
        zombie = claim_chunk(session, planned[0].id)
    cancel(database, document_id)
    retry(database, document_id)
    with database.transaction() as session:
        old = chunks.claim(session, planned[0].id, worker="a", lease_s=9, max_attempts=4)
        (new,) = (c for c in chunks.list_of_document(session, document_id) if c.generation == 2)
        publish_chunk(session, claim_chunk(session, new.id), result_key="second")

    with database.transaction() as session, pytest.raises(StaleStateError):
        publish_chunk(session, zombie, result_key="first")

    with database.transaction() as session:
        rows = pages.list_of_document(session, document_id)
    assert old is None
    assert {row.result_key for row in rows} == {"second"}


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (DocumentState.SUCCEEDED, Retry.NOTHING_TO_RETRY),
        (DocumentState.QUEUED, Retry.STILL_OPEN),
        (DocumentState.ASSEMBLING, Retry.STILL_OPEN),
    ],
)
def test_what_has_nothing_to_retry_is_not_changed(
    database: Database, state: DocumentState, outcome: Retry
) -> None:
    with database.transaction() as session:
        document_id = add_document(session, state=state)

    found = retry(database, document_id)

    with database.transaction() as session:
        document = documents.get(session, document_id)
    assert (found, document.state, document.generation) == (outcome, state, 1)


def test_another_tenants_document_is_not_there(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, state=DocumentState.CANCELLED)

    with database.transaction() as session, pytest.raises(RowNotFoundError):
        retrying.retry(session, document_id, tenant="stranger")


@pytest.mark.parametrize("_round", range(5))
def test_of_two_retries_at_once_one_starts(database: Database, _round: int) -> None:
    with database.transaction() as session:
        document_id, _ = add_recognizing_document(session, page_count=3)
    cancel(database, document_id)
    together = threading.Barrier(2)
    outcomes = []

    def ask() -> None:
        with database.transaction() as session:
            session.connection()
            together.wait(timeout=10)
            outcomes.append(retrying.retry(session, document_id, tenant=TENANT))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.transaction() as session:
        generation = documents.get(session, document_id).generation
        new = [c for c in chunks.list_of_document(session, document_id) if c.generation > 1]
    assert sorted(outcomes) == [Retry.STARTED, Retry.STILL_OPEN]
    assert (generation, len(new)) == (2, 2)


def test_a_retry_is_as_much_open_work_as_it_has_pages_to_read(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(
            session, page_count=10, chunk_pages=2, pixel_estimate=1_000
        )
        before = admission.open_work(session)[Priority.INTERACTIVE]
        for chunk in planned[1:]:
            publish_chunk(session, claim_chunk(session, chunk.id))
    cancel(database, document_id)

    retry(database, document_id)

    with database.transaction() as session:
        after = admission.open_work(session)[Priority.INTERACTIVE]
    assert (before.pages, before.pixels) == (10, 10_000)
    assert (after.documents, after.pages, after.pixels) == (1, 2, 2_000)
