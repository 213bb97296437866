"""Exports made by a worker: once, whatever is sent how often, and found again when it is not."""

import hashlib
import io
import json
from typing import Any
from uuid import UUID

import pymupdf
import pytest
from celery import Celery

from db import deleting, exports
from db.exports import Requested
from db.models import Document, Export
from db.states import ExportState
from storage import keys
from tests.support.export_checks import check_alto
from tests.support.pdf_files import grey_pages
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.rows import NOT_DUE_S, TENANT
from tests.support.stores import StoreWithACallback
from workers.celeryconfig import EXPORT_QUEUE
from workers.clear_storage import clear_storage
from workers.export_document import export_document
from workers.queue_room import waiting


def ask(
    pipeline: Pipeline, document_id: UUID, name: str, *, pages: str = "", due_s: float = NOT_DUE_S
) -> Requested:
    with pipeline.database.transaction() as session:
        requested = exports.request(
            session,
            pipeline.document(document_id),
            generation=pipeline.document(document_id).generation,
            name=name,
            pages=pages,
            dispatch_after_s=due_s,
        )
    assert isinstance(requested, Requested)
    return requested


def make(pipeline: Pipeline, export_id: UUID, **changes: Any) -> int:
    return export_document(
        export_id,
        transaction=pipeline.database.transaction,
        store=changes.get("store", pipeline.store),
        source_file=pipeline.source_file,
        renderer=pipeline.renderer,
        rules=pipeline.rules,
    )


def row(pipeline: Pipeline, export_id: UUID) -> Export:
    with pipeline.database.transaction() as session:
        return session.get_one(Export, export_id)


def content(pipeline: Pipeline, export_id: UUID) -> bytes:
    key = row(pipeline, export_id).result_key
    assert key is not None
    return pipeline.store.get(key)


@pytest.fixture
def read_document(pipeline: Pipeline) -> UUID:
    document_id = pipeline.accept(tiff_of(5))
    pipeline.finish(document_id)
    return document_id


@pytest.mark.parametrize("name", ["markdown", "hocr", "alto", "csv"])
def test_an_export_is_stored_beside_the_result(
    pipeline: Pipeline, read_document: UUID, name: str
) -> None:
    asked = ask(pipeline, read_document, name)

    size_bytes = make(pipeline, asked.export.id)

    made = row(pipeline, asked.export.id)
    assert asked.is_new
    assert made.state == ExportState.SUCCEEDED
    assert made.result_key == f"documents/{read_document}/1/exports/{name}/all/1"
    assert made.result_size_bytes == size_bytes == len(content(pipeline, asked.export.id))
    assert made.dispatch_after is None


def test_an_export_of_some_pages_holds_those(pipeline: Pipeline, read_document: UUID) -> None:
    asked = ask(pipeline, read_document, "alto", pages="2-3")

    make(pipeline, asked.export.id)

    root = check_alto(content(pipeline, asked.export.id).decode())
    numbers = root.xpath("//*[local-name()='Page']/@PHYSICAL_IMG_NR")
    assert list(map(str, numbers)) == ["2", "3"]
    assert (row(pipeline, asked.export.id).result_key or "").endswith("/exports/alto/2-3/1")


@pytest.mark.parametrize("source", ["pdf", "tiff"])
def test_a_searchable_pdf_is_made_from_the_source(pipeline: Pipeline, source: str) -> None:
    body = grey_pages([10, 20, 30]) if source == "pdf" else tiff_of(3)
    document_id = pipeline.accept(body)
    pipeline.finish(document_id)
    asked = ask(pipeline, document_id, "pdf", pages="2-3")

    make(pipeline, asked.export.id)

    with pymupdf.open(stream=content(pipeline, asked.export.id)) as document:
        assert document.page_count == 2
        text = "".join(page.get_text() for page in document)
    words = [
        word["text"]
        for page in pipeline.result(document_id)["pages"][1:]
        for line in page["lines"]
        for word in line["words"]
    ]
    assert words
    assert all(word in text for word in words)


def test_a_message_that_comes_twice_makes_one_export(
    pipeline: Pipeline, read_document: UUID
) -> None:
    asked = ask(pipeline, read_document, "hocr")
    make(pipeline, asked.export.id)
    before = row(pipeline, asked.export.id)

    assert make(pipeline, asked.export.id) == 0
    assert row(pipeline, asked.export.id).finished_at == before.finished_at
    listed = pipeline.store.list(f"{keys.document_prefix(read_document)}1/exports/")
    assert len(list(listed)) == 1


def test_what_is_asked_for_twice_is_one_row(pipeline: Pipeline, read_document: UUID) -> None:
    first, second = (ask(pipeline, read_document, "pdf") for _ in range(2))

    assert first.export.id == second.export.id
    assert (first.is_new, second.is_new) == (True, False)
    assert ask(pipeline, read_document, "pdf", pages="1-1").export.id != first.export.id


def test_an_export_whose_message_was_lost_is_sent_by_the_sweep(
    pipeline: Pipeline, read_document: UUID
) -> None:
    ask(pipeline, read_document, "csv", due_s=-1)

    assert waiting()[EXPORT_QUEUE] == 0
    pipeline.sweep()
    assert waiting()[EXPORT_QUEUE] == 1


def test_exports_of_one_tenant_leave_another_one_his_turn(
    pipeline: Pipeline, read_document: UUID, broker: Celery
) -> None:
    for last in range(1, 101):
        ask(pipeline, read_document, "csv", pages=f"1-{last}", due_s=-60)
    other_document = pipeline.accept(tiff_of(1))
    with pipeline.database.transaction() as session:
        session.get_one(Document, other_document).tenant = "another"
    pipeline.sweep()
    sent_before = waiting()[EXPORT_QUEUE]

    with broker.connection_for_read() as connection:
        for _ in range(2):
            connection.default_channel.basic_get(EXPORT_QUEUE, no_ack=True)
    asked = ask(pipeline, other_document, "csv", due_s=-1)
    pipeline.sweep()

    assert sent_before == waiting()[EXPORT_QUEUE] == pipeline.rules.queue_limit // 8
    assert row(pipeline, asked.export.id).deliveries == 1


def test_an_export_whose_worker_died_is_made_by_the_next(
    pipeline: Pipeline, read_document: UUID
) -> None:
    asked = ask(pipeline, read_document, "csv")
    with pipeline.database.transaction() as session:
        dead = exports.claim(session, asked.export.id, worker="dead", lease_s=-1, max_attempts=9)
    assert dead is not None

    assert make(pipeline, asked.export.id) > 0
    made = row(pipeline, asked.export.id)
    assert (made.attempt, made.state) == (2, ExportState.SUCCEEDED)
    assert (made.result_key or "").endswith("/2")


def test_an_export_over_which_workers_die_is_given_up(
    pipeline: Pipeline, read_document: UUID
) -> None:
    asked = ask(pipeline, read_document, "csv")
    for _ in range(pipeline.rules.max_attempts):
        with pipeline.database.transaction() as session:
            exports.claim(
                session,
                asked.export.id,
                worker="dead",
                lease_s=-1,
                max_attempts=pipeline.rules.max_attempts,
            )

    assert make(pipeline, asked.export.id) == 0
    pipeline.sweep()

    given_up = row(pipeline, asked.export.id)
    assert (given_up.state, given_up.error_code) == (ExportState.FAILED, "worker_lost")
    assert given_up.dispatch_after is None


def test_a_failed_export_is_tried_again_after_a_while(
    pipeline: Pipeline, read_document: UUID
) -> None:
    asked = ask(pipeline, read_document, "csv")
    with pipeline.database.transaction() as session:
        claim = exports.claim(session, asked.export.id, worker="a", lease_s=60, max_attempts=4)
        assert claim is not None
        exports.fail(session, claim, code="damaged", detail="")

    assert not ask(pipeline, read_document, "csv").is_new
    with pipeline.database.transaction() as session:
        session.connection().exec_driver_sql(
            "UPDATE exports SET finished_at = now() - interval '2 hours'"
        )
    assert ask(pipeline, read_document, "csv").is_new
    assert make(pipeline, asked.export.id) > 0


def test_a_source_that_cannot_be_made_searchable_is_a_named_failure(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(grey_pages([10]))
    pipeline.finish(document_id)
    body = b"%PDF-1.7\nnothing is left"
    pipeline.store.put(keys.source_key(document_id), body, media_type="application/pdf")
    with pipeline.database.transaction() as session:
        document = pipeline.document(document_id)
        document.sha256 = hashlib.sha256(body).hexdigest()
        session.merge(document)
    other = pipeline.accept(tiff_of(1))
    pipeline.split(other)  # another source takes the place of the one that is kept
    asked = ask(pipeline, document_id, "pdf")

    assert make(pipeline, asked.export.id) == 0

    failed = row(pipeline, asked.export.id)
    assert (failed.state, failed.error_code) == (ExportState.FAILED, "damaged")


def test_a_document_that_is_deleted_takes_its_exports_along(
    pipeline: Pipeline, read_document: UUID
) -> None:
    asked = ask(pipeline, read_document, "csv")
    with pipeline.database.transaction() as session:
        deleting.mark(session, read_document, tenant=TENANT, writers_s=60)

    assert make(pipeline, asked.export.id) == 0


def test_objects_of_a_document_whose_export_is_under_way_are_removed_twice(
    pipeline: Pipeline, read_document: UUID
) -> None:
    asked = ask(pipeline, read_document, "csv")
    with pipeline.database.transaction() as session:
        exports.claim(session, asked.export.id, worker="a", lease_s=60, max_attempts=4)
        session.connection().exec_driver_sql(
            "UPDATE documents SET finished_at = now() - interval '1 day'"
        )
    with pipeline.database.transaction() as session:
        deleting.mark(session, read_document, tenant=TENANT, writers_s=60)
        (deletion,) = deleting.take(session, limit=1, backoff_s=60)

    assert not deletion.is_last


def test_what_was_written_for_a_document_that_was_deleted_meanwhile_is_removed(
    pipeline: Pipeline, read_document: UUID
) -> None:
    asked = ask(pipeline, read_document, "csv")

    def delete_all() -> None:
        with pipeline.database.transaction() as session:
            deleting.mark(session, read_document, tenant=TENANT, writers_s=-1)
        clear_storage(
            transaction=pipeline.database.transaction, store=pipeline.store, rules=pipeline.rules
        )

    store = StoreWithACallback(delete_all)
    for each in pipeline.store.list(""):
        store.put(each.key, pipeline.store.get(each.key), media_type="")

    assert make(pipeline, asked.export.id, store=store) == 0

    assert list(store.list(f"{keys.document_prefix(read_document)}1/exports/")) == []


def test_json_of_all_pages_is_the_result(pipeline: Pipeline, read_document: UUID) -> None:
    asked = ask(pipeline, read_document, "json")

    make(pipeline, asked.export.id)

    assert json.load(io.BytesIO(content(pipeline, asked.export.id))) == pipeline.result(
        read_document
    )
