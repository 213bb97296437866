"""A document that is retried, from its message to its result, on a real database and broker."""

from uuid import UUID

import pytest

from db import cancelling, retrying
from db.outbox import Work
from db.states import DocumentState, PageState
from storage import keys
from storage.errors import ObjectNotFoundError
from tests.support.engines import FailingEngine, NumberingEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.rows import TENANT
from workers.ocr.errors import DamagedPageError
from workers.recognize_chunk import ChunkOutcome


def retry(pipeline: Pipeline, document_id: UUID) -> None:
    with pipeline.database.transaction() as session:
        retrying.retry(session, document_id, tenant=TENANT)


def half_read(pipeline: Pipeline) -> UUID:
    """Return a document of 5 pages, of which the chunk in the middle failed."""
    document_id = pipeline.accept(tiff_of(5))
    pipeline.split(document_id)
    first, middle, last = pipeline.chunk_ids(document_id)
    pipeline.recognize(first)
    pipeline.engine = FailingEngine(DamagedPageError("x"))
    pipeline.recognize(middle)
    pipeline.engine = NumberingEngine()
    pipeline.recognize(last)
    pipeline.assemble(document_id)
    return document_id


def new_chunks(pipeline: Pipeline, document_id: UUID) -> list[UUID]:
    return pipeline.chunk_ids(document_id)[3:]


def test_only_what_failed_is_read_again_and_the_new_result_takes_the_place_of_the_old(
    pipeline: Pipeline,
) -> None:
    document_id = half_read(pipeline)
    before = pipeline.document(document_id)
    old_result = pipeline.result(document_id)

    retry(pipeline, document_id)
    while_open = pipeline.result(document_id)
    outcomes = [pipeline.recognize(each) for each in new_chunks(pipeline, document_id)]
    state = pipeline.assemble(document_id)

    after = pipeline.document(document_id)
    assert before.state == DocumentState.PARTLY_SUCCEEDED
    assert while_open == old_result
    assert outcomes == [ChunkOutcome(pages_ok=2)]
    assert (state, after.generation, after.error_code) == (DocumentState.SUCCEEDED, 2, None)
    assert after.result_key == keys.result_key(document_id, 2)
    assert (after.pages_ok, after.pages_failed) == (5, 0)
    assert pipeline.result(document_id)["full_text"] == "\f".join(
        f"page {number}" for number in range(1, 6)
    )


def test_the_sweep_sends_the_chunks_of_a_retry(pipeline: Pipeline) -> None:
    document_id = half_read(pipeline)
    retry(pipeline, document_id)

    done = pipeline.sweep()

    assert done.sent[Work.RECOGNIZE] == 1


def test_a_retried_chunk_that_nobody_can_finish_fails_its_pages_once_more(
    pipeline: Pipeline,
) -> None:
    document_id = half_read(pipeline)
    retry(pipeline, document_id)
    (chunk_id,) = new_chunks(pipeline, document_id)
    pipeline.engine = FailingEngine(RuntimeError("x"))

    with pytest.raises(RuntimeError):
        pipeline.recognize(chunk_id)
    state = pipeline.assemble(document_id)

    rows = pipeline.pages(document_id)
    assert state == DocumentState.PARTLY_SUCCEEDED
    assert [row.error_code for row in rows] == [None, None, "internal", "internal", None]
    assert [row.state for row in rows].count(PageState.OK) == 3


def test_a_document_cancelled_before_its_split_is_read_whole_when_it_is_retried(
    pipeline: Pipeline,
) -> None:
    document_id = pipeline.accept(tiff_of(2))
    with pipeline.database.transaction() as session:
        cancelling.cancel(session, document_id, tenant=TENANT)

    retry(pipeline, document_id)
    state = pipeline.finish(document_id)

    assert state == DocumentState.SUCCEEDED
    assert pipeline.document(document_id).result_key == keys.result_key(document_id, 2)
    with pytest.raises(ObjectNotFoundError):
        pipeline.store.head(keys.result_key(document_id, 1))
