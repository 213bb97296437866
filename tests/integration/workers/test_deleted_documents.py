"""Deleted documents: what goes when, whoever dies or writes late meanwhile."""

import threading
from collections.abc import Iterable
from uuid import UUID

import pytest
from sqlalchemy import func, select, text

from db import deleting, documents
from db.deleting import Deletion
from db.errors import RowNotFoundError
from db.models import Chunk, Document, Page
from db.states import DocumentState
from storage import keys
from storage.errors import StorageError, StorageUnavailableError
from storage.memory import InMemoryObjectStore
from tests.support.engines import SlowEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.rows import TENANT
from workers.clear_storage import clear_storage
from workers.recognize_chunk import ChunkOutcome

HARD_LIMIT_S = 900.0


class StubbornObjectStore(InMemoryObjectStore):
    """Refuses to delete the documents that it is told to; ``error`` is what it says then."""

    def __init__(self, *kept: UUID, error: StorageError) -> None:
        super().__init__()
        self.kept = tuple(map(keys.document_prefix, kept))
        self._error = error

    def delete(self, keys: Iterable[str]) -> None:
        deleted = list(keys)
        if any(key.startswith(self.kept) for key in deleted):
            raise self._error
        super().delete(deleted)


def delete(pipeline: Pipeline, document_id: UUID) -> None:
    with pipeline.database.transaction() as session:
        deleting.mark(session, document_id, tenant=TENANT, writers_s=HARD_LIMIT_S)


def clear(pipeline: Pipeline, store: InMemoryObjectStore | None = None) -> bool:
    return clear_storage(
        transaction=pipeline.database.transaction,
        store=store or pipeline.store,
        rules=pipeline.rules,
    )


def let_pass(pipeline: Pipeline, seconds: float) -> None:
    """Let time pass for what is being deleted."""
    with pipeline.database.transaction() as session:
        session.execute(
            text(
                "UPDATE documents SET"
                " lease_expires_at = lease_expires_at - make_interval(secs => :s),"
                " dispatch_after = dispatch_after - make_interval(secs => :s)"
                " WHERE state = 'deleting'"
            ),
            {"s": seconds},
        )


def rows_left(pipeline: Pipeline) -> list[int]:
    with pipeline.database.transaction() as session:
        return [
            session.scalar(select(func.count()).select_from(table)) or 0
            for table in (Document, Page, Chunk)
        ]


def objects_left(pipeline: Pipeline) -> list[str]:
    return [found.key for found in pipeline.store.list("")]


def age_of_final(pipeline: Pipeline, document_id: UUID, seconds: float) -> None:
    with pipeline.database.transaction() as session:
        session.execute(
            text(
                "UPDATE documents SET finished_at = finished_at - make_interval(secs => :s)"
                " WHERE id = :id"
            ),
            {"s": seconds, "id": document_id},
        )


def test_a_document_that_was_final_for_long_goes_in_one_round(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(3))
    pipeline.finish(document_id)
    age_of_final(pipeline, document_id, HARD_LIMIT_S + 1)
    other = pipeline.accept(tiff_of(1))

    delete(pipeline, document_id)
    clear(pipeline)

    assert rows_left(pipeline) == [1, 0, 0]
    assert objects_left(pipeline) == [keys.source_key(other)]


def test_a_deleted_document_is_hidden_at_once(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))

    delete(pipeline, document_id)

    with pipeline.database.transaction() as session:
        with pytest.raises(RowNotFoundError):
            documents.get(session, document_id, tenant=TENANT)
        listed = documents.list_page(session, tenant=TENANT, limit=10)
        asked_for = documents.list_page(
            session, tenant=TENANT, limit=10, state=DocumentState.DELETING
        )
    assert (listed, asked_for) == ([], [])


def test_the_row_stays_until_nobody_can_write_any_more(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    delete(pipeline, document_id)
    clear(pipeline)
    left_first = (rows_left(pipeline)[0], objects_left(pipeline))
    # What a worker that was stopped in its upload writes when it goes on.
    late = keys.chunk_pages_key(document_id, pipeline.chunk_ids(document_id)[0], 1)
    pipeline.store.put(late, b"late", media_type="application/gzip")
    clear(pipeline)
    left_before_its_time = objects_left(pipeline)

    let_pass(pipeline, HARD_LIMIT_S + 1)
    clear(pipeline)

    assert left_first == (1, [])
    assert left_before_its_time == [late]
    assert rows_left(pipeline) == [0, 0, 0]
    assert objects_left(pipeline) == []


def test_a_worker_stops_and_publishes_nothing_of_a_deleted_document(pipeline: Pipeline) -> None:
    engine = pipeline.engine = SlowEngine(page_s=0.1)
    pipeline.chunk_pages = 200
    document_id = pipeline.accept(tiff_of(200))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    outcomes: list[ChunkOutcome] = []
    worker = threading.Thread(target=lambda: outcomes.append(pipeline.recognize(chunk_id)))
    worker.start()
    engine.is_reading.wait(timeout=60)

    delete(pipeline, document_id)
    clear(pipeline)
    worker.join()

    assert outcomes == [ChunkOutcome()]
    assert engine.pages_read < 200
    assert objects_left(pipeline) == []


def test_messages_about_a_document_that_is_gone_change_nothing(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    delete(pipeline, document_id)
    let_pass(pipeline, HARD_LIMIT_S + 1)
    clear(pipeline)

    outcome = pipeline.recognize(chunk_id)
    assembled = pipeline.assemble(document_id, generation=1)
    pages = pipeline.split(document_id)

    assert (outcome, assembled, pages) == (ChunkOutcome(), "", 0)


def test_a_round_that_dies_between_objects_and_rows_is_done_again(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    delete(pipeline, document_id)
    let_pass(pipeline, HARD_LIMIT_S + 1)
    with pipeline.database.transaction() as session:
        (taken,) = deleting.take(session, limit=10, backoff_s=30)
    pipeline.store.delete(objects_left(pipeline))  # and the process is gone

    clear(pipeline)
    left_while_it_rests = rows_left(pipeline)[0]
    let_pass(pipeline, 31)
    clear(pipeline)

    assert taken == Deletion(document_id, is_last=True)
    assert left_while_it_rests == 1
    assert rows_left(pipeline) == [0, 0, 0]


def test_a_document_whose_objects_stay_is_tried_again_for_ever(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    delete(pipeline, document_id)
    away = StubbornObjectStore(document_id, error=StorageUnavailableError("x"))
    away.put(keys.source_key(document_id), b"x", media_type="image/tiff")
    for _ in range(20):
        let_pass(pipeline, 64 * pipeline.rules.dispatch_grace_s + 1)
        clear(pipeline, away)
    rows_while_away = rows_left(pipeline)[0]

    away.kept = ("nothing",)
    let_pass(pipeline, 64 * pipeline.rules.dispatch_grace_s + 1)
    clear(pipeline, away)

    assert rows_while_away == 1
    assert (rows_left(pipeline)[0], list(away.list(""))) == (0, [])


def test_a_document_that_the_store_refuses_to_delete_holds_up_no_other(pipeline: Pipeline) -> None:
    refused, other = (pipeline.accept(tiff_of(1)) for _ in range(2))
    store = StubbornObjectStore(refused, error=StorageError("AccessDenied"))
    for document_id in (refused, other):
        store.put(keys.source_key(document_id), b"x", media_type="image/tiff")
        delete(pipeline, document_id)
    let_pass(pipeline, HARD_LIMIT_S + 1)

    clear(pipeline, store)

    assert [found.key for found in store.list("")] == [keys.source_key(refused)]
    assert rows_left(pipeline)[0] == 1


def test_two_that_clear_at_once_take_different_documents(pipeline: Pipeline) -> None:
    for _ in range(4):
        delete(pipeline, pipeline.accept(tiff_of(1)))

    with pipeline.database.transaction() as one, pipeline.database.transaction() as other:
        first = deleting.take(one, limit=2, backoff_s=30)
        second = deleting.take(other, limit=4, backoff_s=30)

    assert len({each.document_id for each in [*first, *second]}) == 4


def test_a_document_that_is_being_deleted_is_not_given_up_as_failed(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    delete(pipeline, document_id)
    let_pass(pipeline, HARD_LIMIT_S + 1)

    with pipeline.database.transaction() as session:
        is_given_up = documents.give_up(
            session, document_id, code="worker_lost", detail="x", max_attempts=1
        )

    assert not is_given_up
    assert pipeline.document(document_id).state == DocumentState.DELETING
