"""Cancelling against everybody else who changes the same rows."""

import threading
from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy import text

from db import batches, cancelling, chunks, documents, pages
from db.engine import Database, Session
from db.errors import RowNotFoundError, StaleStateError
from db.planned_chunks import PlannedChunk
from db.states import ChunkState, DocumentState, PageState
from tests.support.backlog import add_batch
from tests.support.locks import wait_for_somebody_who_waits
from tests.support.rows import (
    TENANT,
    add_document,
    add_recognizing_document,
    claim_chunk,
    claim_split,
    publish_chunk,
)


def cancel(database: Database, document_id: UUID) -> DocumentState:
    with database.transaction() as session:
        return cancelling.cancel(session, document_id, tenant=TENANT)


def state_of(database: Database, document_id: UUID) -> str:
    with database.transaction() as session:
        return documents.get(session, document_id).state


def chunk_states(database: Database, document_id: UUID) -> list[str]:
    with database.transaction() as session:
        return [chunk.state for chunk in chunks.list_of_document(session, document_id)]


def test_a_queued_document_is_cancelled_and_never_split(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)

    before = cancel(database, document_id)

    with database.transaction() as session:
        late = documents.claim_split(session, document_id, worker="a", lease_s=9, max_attempts=4)
        document = documents.get(session, document_id)
    assert (before, late) == (DocumentState.QUEUED, None)
    assert (document.state, document.error_code) == (DocumentState.CANCELLED, "cancelled")
    assert document.dispatch_after is None
    assert document.finished_at is not None


def test_a_split_that_was_cancelled_writes_no_rows(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        held = claim_split(session, document_id)
    cancel(database, document_id)

    with database.transaction() as session, pytest.raises(StaleStateError):
        documents.require_held(session, held)
    with database.transaction() as session, pytest.raises(StaleStateError):
        documents.start_recognizing(session, held, page_count=2, chunks=[], chord_grace_s=None)

    with database.transaction() as session:
        assert pages.list_of_document(session, document_id) == []


def test_open_chunks_are_cancelled_and_what_was_read_is_kept(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=6)
        publish_chunk(session, claim_chunk(session, planned[0].id))
        held = claim_chunk(session, planned[1].id)

    cancel(database, document_id)

    assert chunk_states(database, document_id) == [
        ChunkState.SUCCEEDED,
        ChunkState.CANCELLED,
        ChunkState.CANCELLED,
    ]
    with database.transaction() as session:
        document = documents.get(session, document_id)
        never = chunks.claim(session, planned[2].id, worker="a", lease_s=9, max_attempts=4)
        open_rows = [c for c in chunks.list_of_document(session, document_id) if c.dispatch_after]
    assert (document.pages_ok, document.pages_failed, document.page_count) == (2, 0, 6)
    assert (never, open_rows) == (None, [])
    with database.transaction() as session, pytest.raises(StaleStateError):
        chunks.require_held(session, held)


def test_an_assembly_that_was_cancelled_publishes_nothing(database: Database) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=1)
        publish_chunk(session, claim_chunk(session, planned[0].id))
        held = documents.claim_assembly(
            session, document_id, generation=1, worker="a", lease_s=60, max_attempts=4
        )
    assert held is not None
    cancel(database, document_id)

    with database.transaction() as session, pytest.raises(StaleStateError):
        documents.finish(
            session,
            held,
            state=DocumentState.SUCCEEDED,
            result_key="r",
            result_size_bytes=1,
            values={},
        )

    with database.transaction() as session:
        assert documents.get(session, document_id).result_key is None


def test_a_cancelled_document_stays_what_it_is(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
    cancel(database, document_id)
    with database.transaction() as session:
        finished_at = documents.get(session, document_id).finished_at

    again = cancel(database, document_id)

    with database.transaction() as session:
        assert documents.get(session, document_id).finished_at == finished_at
    assert again == DocumentState.CANCELLED


def test_a_document_that_has_failed_is_not_cancelled(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        documents.fail(session, claim_split(session, document_id), code="damaged", detail="x")

    before = cancel(database, document_id)

    assert (before, state_of(database, document_id)) == (DocumentState.FAILED, DocumentState.FAILED)


def test_another_tenants_document_is_not_there(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)

    with database.transaction() as session, pytest.raises(RowNotFoundError):
        cancelling.cancel(session, document_id, tenant="stranger")

    assert state_of(database, document_id) == DocumentState.QUEUED


def both_at_once(database: Database, *moves: Callable[[Session], object]) -> list[object]:
    """Make moves in transactions that are open together; return what each gave or raised."""
    together = threading.Barrier(len(moves))
    outcomes: list[object] = [None] * len(moves)

    def run(place: int) -> None:
        try:
            with database.transaction() as session:
                session.connection()
                together.wait(timeout=10)
                outcomes[place] = moves[place](session)
        except StaleStateError as error:
            outcomes[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(moves))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize("_round", range(5))
def test_the_last_chunk_and_a_cancel_leave_a_cancelled_document(
    database: Database, _round: int
) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=1)
        held = claim_chunk(session, planned[0].id)

    _, published = both_at_once(
        database,
        lambda session: cancelling.cancel(session, document_id, tenant=TENANT),
        lambda session: publish_chunk(session, held),
    )

    with database.transaction() as session:
        document = documents.get(session, document_id)
        (page,) = pages.list_of_document(session, document_id)
    came_first = not isinstance(published, StaleStateError)
    assert (document.state, document.dispatch_after) == (DocumentState.CANCELLED, None)
    assert document.pages_ok == int(came_first) == int(page.state == PageState.OK)


@pytest.mark.parametrize("_round", range(5))
def test_no_chunk_is_held_after_a_claim_and_a_cancel_at_once(
    database: Database, _round: int
) -> None:
    with database.transaction() as session:
        document_id, planned = add_recognizing_document(session, page_count=1)

    both_at_once(
        database,
        lambda session: cancelling.cancel(session, document_id, tenant=TENANT),
        lambda session: chunks.claim(
            session, planned[0].id, worker="a", lease_s=60, max_attempts=4
        ),
    )

    assert chunk_states(database, document_id) == [ChunkState.CANCELLED]


@pytest.mark.parametrize("_round", range(5))
def test_no_chunk_is_open_after_a_split_and_a_cancel_at_once(
    database: Database, _round: int
) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        held = claim_split(session, document_id)

    def split(session: Session) -> None:
        plan = [PlannedChunk(document_id, 0, 1)]
        documents.start_recognizing(session, held, page_count=1, chunks=plan, chord_grace_s=None)

    both_at_once(
        database,
        lambda session: cancelling.cancel(session, document_id, tenant=TENANT),
        split,
    )

    assert state_of(database, document_id) == DocumentState.CANCELLED
    assert set(chunk_states(database, document_id)) <= {ChunkState.CANCELLED}


def test_a_batch_is_cancelled_in_time_while_many_add_documents_to_it(database_url: str) -> None:
    # More at a time than any of them is done before the next one begins.
    adding, pause_s = 24, 0.02
    database = Database(database_url, pool_size=adding + 1)
    with database.transaction() as session:
        batch_id = add_batch(session, tenant=TENANT)
    all_add = threading.Barrier(adding + 1)
    is_over = threading.Event()

    def add_until_closed() -> None:
        is_first = True
        while not is_over.is_set():
            with database.transaction() as session:
                if not batches.takes_documents(session, batch_id):
                    return
                if is_first:
                    all_add.wait(timeout=30)
                is_first = False
                add_document(session, batch_id=batch_id)
                threading.Event().wait(pause_s)

    threads = [threading.Thread(target=add_until_closed) for _ in range(adding)]
    for thread in threads:
        thread.start()
    all_add.wait(timeout=30)

    try:
        with database.transaction() as session:
            session.execute(text("SET LOCAL statement_timeout = '20s'"))
            cancelling.start_batch(session, batch_id, tenant=TENANT)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()

    with database.transaction() as session:
        assert not batches.takes_documents(session, batch_id)
    database.dispose()


def test_a_cancel_and_a_worker_that_writes_its_row_twice_do_not_wait_for_each_other(
    database: Database,
) -> None:
    with database.transaction() as session:
        document_id, (first, _) = add_recognizing_document(session)
        held = claim_chunk(session, first.id)
    cancels = threading.Thread(target=cancel, args=[database, document_id])

    with database.transaction() as worker:
        chunks.note_failure(worker, held, "gpu_out_of_memory")
        cancels.start()
        wait_for_somebody_who_waits(database)
        # Postgres looks after the document of a row that the transaction itself has written.
        chunks.put_back(worker, held, delay_s=0, is_excused=False)
    cancels.join()

    assert state_of(database, document_id) == DocumentState.CANCELLED
    assert set(chunk_states(database, document_id)) == {ChunkState.CANCELLED}
