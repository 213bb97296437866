"""Batches that are cancelled: by whom, however many documents they have, and against what."""

import threading
from collections.abc import Iterator
from uuid import UUID

import pytest

from api.ledger import BatchClosedError, TenantLedger
from db import cancelling, documents, retrying
from db.batches import BatchCounts
from db.engine import Database
from db.models import Batch
from db.retrying import Retry
from db.states import DocumentState
from tests.support.backlog import add_batch, add_bulk
from tests.support.pipeline import Pipeline
from tests.support.rows import TENANT, add_document, add_recognizing_document, make_document
from workers.cancel_batches import cancel_batches


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.dispose()


def ledger(database: Database) -> TenantLedger:
    return TenantLedger(database.transaction, TENANT)


def add(database: Database, batch_id: UUID) -> None:
    """Do what the API does once a file has arrived."""
    document = make_document(batch_id=batch_id)
    ledger(database).begin_upload(document.id, expires_s=60)
    ledger(database).add_document(document, dispatch_after_s=0)


def counts(database: Database, batch_id: UUID) -> BatchCounts:
    return ledger(database).batch(batch_id)[1]


def start(database: Database, batch_id: UUID) -> None:
    """Cancel a batch as an API that dies at once afterwards."""
    with database.transaction() as session:
        cancelling.start_batch(session, batch_id, tenant=TENANT)


def is_finished(database: Database, batch_id: UUID) -> bool:
    with database.transaction() as session:
        return session.get_one(Batch, batch_id).finished_at is not None


def cancel_to_the_end(database: Database) -> int:
    """Do rounds until none is left to be done; return how many it took."""
    rounds = 1
    while cancel_batches(transaction=database.transaction):
        rounds += 1
    return rounds


def test_documents_in_every_state_of_work_are_cancelled_and_others_are_not(
    database: Database,
) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
        add_document(session, batch_id=batch_id)
        add_recognizing_document(session, batch_id=batch_id)
        done = add_document(session, batch_id=batch_id, state=DocumentState.SUCCEEDED)
        other = add_document(session)

    ledger(database).cancel_batch(batch_id)

    with database.transaction() as session:
        states = [documents.get(session, each).state for each in (done, other)]
    assert counts(database, batch_id).documents == {
        DocumentState.CANCELLED: 2,
        DocumentState.SUCCEEDED: 1,
    }
    assert states == [DocumentState.SUCCEEDED, DocumentState.QUEUED]
    assert is_finished(database, batch_id)


def test_a_large_batch_is_cancelled_by_the_sweep_after_the_first_thousand(
    database: Database,
) -> None:
    with database.transaction() as session:
        batch_id = UUID(add_bulk(session, tenant=TENANT, count=10_000))
    ledger(database).cancel_batch(batch_id)
    after_the_answer = counts(database, batch_id).documents

    rounds = cancel_to_the_end(database)

    assert after_the_answer == {DocumentState.CANCELLED: 1_000, DocumentState.QUEUED: 9_000}
    assert counts(database, batch_id).documents == {DocumentState.CANCELLED: 10_000}
    assert rounds > 1
    assert is_finished(database, batch_id)


def test_a_batch_whose_cancelling_was_killed_half_way_is_cancelled_by_the_next_round(
    database: Database,
) -> None:
    with database.transaction() as session:
        batch_id = UUID(add_bulk(session, tenant=TENANT, count=30))
    start(database, batch_id)
    with database.transaction() as session:
        cancelling.cancel_some(session, batch_id, after=None, limit=10)

    cancel_to_the_end(database)

    assert counts(database, batch_id).documents == {DocumentState.CANCELLED: 30}
    assert is_finished(database, batch_id)


def test_large_documents_are_cancelled_a_few_at_a_time(database: Database) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
        for _ in range(3):
            add_document(session, batch_id=batch_id, page_count=10_000)
        add_document(session, batch_id=batch_id, page_count=30_000)
    start(database, batch_id)
    steps = 0
    after, is_over = None, False
    left = []

    while not is_over:
        with database.transaction() as session:
            after = cancelling.cancel_some(session, batch_id, after=after, limit=500)
        is_over = after is None
        steps += 1
        left.append(counts(database, batch_id).documents.get(DocumentState.QUEUED, 0))

    assert left == [2, 0]
    assert steps == 2


def test_the_sweep_goes_on_with_a_cancelled_batch(pipeline: Pipeline) -> None:
    with pipeline.database.transaction() as session:
        batch_id = UUID(add_bulk(session, tenant=TENANT, count=3))
    start(pipeline.database, batch_id)

    done = pipeline.sweep()

    assert counts(pipeline.database, batch_id).documents == {DocumentState.CANCELLED: 3}
    assert sum(done.sent.values()) == 0


def test_a_document_that_somebody_holds_is_cancelled_by_a_later_round(database: Database) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
        document_id = add_document(session, batch_id=batch_id)
    with database.transaction() as holder:
        documents.get_locked(holder, document_id, tenant=TENANT)
        ledger(database).cancel_batch(batch_id)
        is_early = is_finished(database, batch_id)

    cancel_to_the_end(database)

    assert not is_early
    assert counts(database, batch_id).documents == {DocumentState.CANCELLED: 1}
    assert is_finished(database, batch_id)


def test_no_document_is_added_to_a_cancelled_batch(database: Database) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
    start(database, batch_id)

    with pytest.raises(BatchClosedError):
        add(database, batch_id)

    assert counts(database, batch_id).total == 0


@pytest.mark.parametrize("_round", range(5))
def test_a_document_that_is_added_while_its_batch_is_cancelled_is_refused_or_cancelled(
    database: Database, _round: int
) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
    together = threading.Barrier(2)

    def add_one() -> None:
        together.wait(timeout=10)
        try:
            add(database, batch_id)
        except BatchClosedError:
            return

    def cancel() -> None:
        together.wait(timeout=10)
        ledger(database).cancel_batch(batch_id)

    threads = [threading.Thread(target=each) for each in (add_one, cancel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(counts(database, batch_id).documents) <= {DocumentState.CANCELLED}


def test_a_document_is_retried_once_its_batch_has_been_cancelled_to_the_end(
    database: Database,
) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
        document_id = add_document(session, batch_id=batch_id, state=DocumentState.CANCELLED)
    start(database, batch_id)
    early = ledger(database).retry_document(document_id)
    cancel_to_the_end(database)

    in_time = ledger(database).retry_document(document_id)
    cancel_to_the_end(database)

    assert (early, in_time) == (Retry.BATCH_IS_BEING_CANCELLED, Retry.STARTED)
    assert counts(database, batch_id).documents == {DocumentState.QUEUED: 1}


def test_a_batch_that_is_cancelled_again_cancels_what_was_retried(database: Database) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
        document_id = add_document(session, batch_id=batch_id)
    ledger(database).cancel_batch(batch_id)
    with database.transaction() as session:
        retrying.retry(session, document_id, tenant=TENANT)

    ledger(database).cancel_batch(batch_id)

    assert counts(database, batch_id).documents == {DocumentState.CANCELLED: 1}
