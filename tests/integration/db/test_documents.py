import pytest

from db import chunks, documents, pages
from db.chunks import PageRecord
from db.engine import Database
from db.errors import DatabaseUnavailableError, DuplicateRowError, RowNotFoundError, StaleStateError
from db.ids import new_id
from db.states import DocumentState, PageState
from tests.support.rows import (
    TENANT,
    add_document,
    add_recognizing_document,
    claim_split,
    make_document,
)


def test_of_two_claims_of_a_queued_document_one_wins(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)

    with database.transaction() as session:
        first = claim_split(session, document_id)
    with database.transaction() as session:
        second = documents.claim_split(session, document_id, worker="b", lease_s=60, max_attempts=4)

    assert (first.attempt, second) == (1, None)


def test_a_split_whose_lease_ended_is_claimed_by_the_next(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim_split(session, document_id, lease_s=-1)

    with database.transaction() as session:
        second = claim_split(session, document_id)

    assert second.attempt == 2


def test_a_document_that_used_up_its_attempts_is_not_claimed(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, attempt=4)

        claim = documents.claim_split(session, document_id, worker="a", lease_s=9, max_attempts=4)

    assert claim is None


def test_excused_attempts_do_not_count(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, attempt=4, excused=1)

        claim = documents.claim_split(session, document_id, worker="a", lease_s=9, max_attempts=4)

    assert claim is not None


def test_a_document_put_back_from_its_split_is_queued_again(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim = claim_split(session, document_id)

        documents.put_back(session, claim, delay_s=5, is_excused=True)

    with database.transaction() as session:
        document = documents.get(session, document_id)
    assert (document.state, document.excused) == (DocumentState.QUEUED, 1)


def test_an_outdated_attempt_cannot_move_the_document(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        zombie = claim_split(session, document_id, lease_s=-1)
        claim_split(session, document_id)

    with database.transaction() as session, pytest.raises(StaleStateError):
        documents.start_recognizing(session, zombie, page_count=1, chunks=[], chord_grace_s=1)


def test_an_outdated_attempt_cannot_fail_the_document(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        zombie = claim_split(session, document_id, lease_s=-1)
        claim_split(session, document_id)

    with database.transaction() as session, pytest.raises(StaleStateError):
        documents.fail(session, zombie, code="damaged", detail="x")


def test_a_split_writes_a_row_for_every_page(database: Database) -> None:
    with database.transaction() as session:
        document_id, _ = add_recognizing_document(session, page_count=5)

    with database.transaction() as session:
        rows = pages.list_of_document(session, document_id)
    assert [(row.page_index, row.state, row.attempts) for row in rows] == [
        (index, PageState.QUEUED, 0) for index in range(5)
    ]


def test_a_document_is_not_assembled_while_chunks_remain(database: Database) -> None:
    with database.transaction() as session:
        document_id, _ = add_recognizing_document(session)

    with database.transaction() as session:
        claim = documents.claim_assembly(
            session, document_id, generation=1, worker="a", lease_s=60, max_attempts=4
        )

    assert claim is None


def test_a_document_is_assembled_once_when_its_chunks_are_done(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=1)
        chunk = chunks.claim(session, planned[0].id, worker="a", lease_s=60, max_attempts=4)
        assert chunk is not None
        chunks.publish(
            session,
            chunk,
            result_key="k",
            pages=[PageRecord(0, PageState.OK, {})],
            assemble_after_s=5,
        )

    with database.transaction() as session:
        claims = [
            documents.claim_assembly(
                session, document_id, generation=1, worker="a", lease_s=60, max_attempts=4
            )
            for _ in range(2)
        ]

    assert [claim is not None for claim in claims] == [True, False]


def test_attempts_of_the_split_do_not_count_for_the_assembly(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session, attempt=3)
        claim = claim_split(session, document_id)
        documents.start_recognizing(session, claim, page_count=1, chunks=[], chord_grace_s=1)

    with database.transaction() as session:
        assembly = documents.claim_assembly(
            session, document_id, generation=1, worker="a", lease_s=60, max_attempts=4
        )

    assert assembly is not None


def test_a_finished_document_is_nobodys_business_any_more(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        claim = claim_split(session, document_id)

        documents.fail(session, claim, code="damaged", detail="It is damaged. Scan it again.")

    with database.transaction() as session:
        document = documents.get(session, document_id)
    assert (document.state, document.dispatch_after) == (DocumentState.FAILED, None)


def test_a_move_that_does_not_exist_is_a_mistake(database: Database) -> None:
    with database.transaction() as session, pytest.raises(ValueError, match="is not a move"):
        documents.move(
            session, new_id(), source=DocumentState.FAILED, target=DocumentState.SPLITTING
        )


def test_another_tenants_document_is_not_found(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)

    with database.transaction() as session, pytest.raises(RowNotFoundError):
        documents.get(session, document_id, tenant="somebody else")


def test_an_idempotency_key_is_taken_once(database: Database) -> None:
    with database.transaction() as session:
        add_document(session, idempotency_key="a")

    with pytest.raises(DuplicateRowError, match="idempotency"), database.transaction() as session:
        add_document(session, idempotency_key="a")


def test_documents_are_listed_newest_first_and_in_pages(database: Database) -> None:
    with database.transaction() as session:
        ids = [add_document(session) for _ in range(5)]

    with database.transaction() as session:
        first = documents.list_page(session, tenant=TENANT, limit=3)
        rest = documents.list_page(session, tenant=TENANT, limit=3, before=first[-1].id)

    assert [document.id for document in [*first, *rest]] == ids[::-1]


def test_an_unreachable_database_is_named_as_such() -> None:
    database = Database("postgresql://nobody:secret@127.0.0.1:9/none")

    with pytest.raises(DatabaseUnavailableError), database.transaction() as session:
        documents.insert(session, make_document(), dispatch_after_s=1)
