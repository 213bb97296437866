"""Retrying a batch in steps, beside everybody else."""

from uuid import UUID

import pytest
from sqlalchemy import update

from db import batch_retrying, cancelling, documents
from db.engine import Database, Session
from db.errors import RowNotFoundError
from db.models import Batch, Document
from db.retrying import Retry
from db.states import DocumentState
from tests.support.backlog import add_batch
from tests.support.rows import TENANT, add_document, claim_split
from workers.retry_batches import retry_batches


def add_failed(session: Session, batch_id: UUID) -> UUID:
    document_id = add_document(session, batch_id=batch_id)
    documents.fail(session, claim_split(session, document_id), code="damaged", detail="x")
    return document_id


def add_cancelled(session: Session, batch_id: UUID) -> UUID:
    document_id = add_document(session, batch_id=batch_id)
    cancelling.cancel(session, document_id, tenant=TENANT)
    return document_id


@pytest.fixture
def batch_id(database: Database) -> UUID:
    with database.transaction() as session:
        return add_batch(session, tenant=TENANT)


def request(database: Database, batch_id: UUID, *, cancelled_too: bool = True) -> Retry:
    with database.transaction() as session:
        return batch_retrying.request(session, batch_id, tenant=TENANT, cancelled_too=cancelled_too)


def retry_some(database: Database, batch_id: UUID, *, limit: int) -> int:
    with database.transaction() as session:
        return batch_retrying.retry_some(session, batch_id, limit=limit)


def states(database: Database, ids: list[UUID]) -> list[str]:
    with database.transaction() as session:
        return [documents.get(session, each).state for each in ids]


def is_retrying(database: Database, batch_id: UUID) -> bool:
    with database.transaction() as session:
        return session.get_one(Batch, batch_id).retry_requested_at is not None


def test_a_batch_is_retried_in_steps_that_follow_each_other(
    database: Database, batch_id: UUID
) -> None:
    with database.transaction() as session:
        ids = [add_failed(session, batch_id) for _ in range(5)]

    outcome = request(database, batch_id)
    counts = [retry_some(database, batch_id, limit=2) for _ in range(3)]

    assert (outcome, counts) == (Retry.STARTED, [2, 2, 1])
    assert states(database, ids) == ["queued"] * 5
    assert not is_retrying(database, batch_id)


def test_a_step_takes_few_documents_where_they_have_many_pages(
    database: Database, batch_id: UUID
) -> None:
    with database.transaction() as session:
        ids = [add_failed(session, batch_id) for _ in range(5)]
        session.execute(update(Document).values(page_count=9_000))

    request(database, batch_id)
    counts = [retry_some(database, batch_id, limit=50) for _ in range(3)]

    assert counts == [3, 2, 0]
    assert states(database, ids) == ["recognizing"] * 5  # their pages are known
    assert not is_retrying(database, batch_id)


def test_the_sweep_ends_what_was_begun(database: Database, batch_id: UUID) -> None:
    with database.transaction() as session:
        ids = [add_failed(session, batch_id) for _ in range(3)]
    request(database, batch_id)
    retry_some(database, batch_id, limit=1)

    has_more = retry_batches(transaction=database.transaction)

    assert not has_more
    assert states(database, ids) == ["queued"] * 3
    assert not is_retrying(database, batch_id)


def test_a_document_that_fails_once_more_is_left_as_it_is(
    database: Database, batch_id: UUID
) -> None:
    with database.transaction() as session:
        first, second = (add_failed(session, batch_id) for _ in range(2))
    request(database, batch_id)
    retry_some(database, batch_id, limit=1)
    with database.transaction() as session:
        documents.fail(session, claim_split(session, first), code="damaged", detail="x")

    retry_batches(transaction=database.transaction)

    assert states(database, [first, second]) == ["failed", "queued"]
    assert not is_retrying(database, batch_id)


def test_a_document_that_somebody_holds_is_retried_by_the_next_walk(
    database: Database, batch_id: UUID
) -> None:
    with database.transaction() as session:
        held, other = (add_failed(session, batch_id) for _ in range(2))
    request(database, batch_id)
    with database.transaction() as session:
        documents.lock(session, held)
        retry_batches(transaction=database.transaction)
    left = states(database, [held, other])

    retry_batches(transaction=database.transaction)

    assert left == ["failed", "queued"]
    assert states(database, [held, other]) == ["queued", "queued"]
    assert not is_retrying(database, batch_id)


@pytest.mark.parametrize(
    ("cancelled_too", "expected"),
    [(True, ["queued", "queued"]), (False, ["queued", "cancelled"])],
)
def test_cancelled_documents_are_retried_on_request(
    database: Database, batch_id: UUID, *, cancelled_too: bool, expected: list[str]
) -> None:
    with database.transaction() as session:
        ids = [add_failed(session, batch_id), add_cancelled(session, batch_id)]

    request(database, batch_id, cancelled_too=cancelled_too)
    retry_batches(transaction=database.transaction)

    assert states(database, ids) == expected


def test_a_batch_without_failures_has_nothing_to_retry(database: Database, batch_id: UUID) -> None:
    with database.transaction() as session:
        add_document(session, batch_id=batch_id)
        add_cancelled(session, batch_id)

    assert request(database, batch_id, cancelled_too=False) is Retry.NOTHING_TO_RETRY
    assert not is_retrying(database, batch_id)


def test_another_retry_takes_nothing_from_the_one_that_is_under_way(
    database: Database, batch_id: UUID
) -> None:
    with database.transaction() as session:
        ids = [add_cancelled(session, batch_id) for _ in range(2)]
    request(database, batch_id)
    refused = request(database, batch_id, cancelled_too=False)
    with database.transaction() as session:
        ids.append(add_failed(session, batch_id))
    request(database, batch_id, cancelled_too=False)

    retry_batches(transaction=database.transaction)

    assert refused is Retry.NOTHING_TO_RETRY
    assert states(database, ids) == ["queued"] * 3


def test_a_cancel_ends_a_retry(database: Database, batch_id: UUID) -> None:
    with database.transaction() as session:
        ids = [add_failed(session, batch_id) for _ in range(2)]
    request(database, batch_id)
    with database.transaction() as session:
        cancelling.start_batch(session, batch_id, tenant=TENANT)

    retry_batches(transaction=database.transaction)

    assert states(database, ids) == [DocumentState.FAILED] * 2
    assert request(database, batch_id) is Retry.BATCH_IS_BEING_CANCELLED


def test_another_tenants_batch_is_not_found(database: Database, batch_id: UUID) -> None:
    with pytest.raises(RowNotFoundError), database.transaction() as session:
        batch_retrying.request(session, batch_id, tenant="stranger", cancelled_too=True)
