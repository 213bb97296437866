"""Work on a document that is cancelled meanwhile, on a real database and a real render child."""

import threading
from uuid import UUID

from db import cancelling
from db.outbox import Work
from db.states import DocumentState, PageState
from storage import keys
from tests.support.engines import SlowEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.rows import TENANT
from workers.recognize_chunk import ChunkOutcome

MANY_PAGES = 200


def cancel(pipeline: Pipeline, document_id: UUID) -> None:
    with pipeline.database.transaction() as session:
        cancelling.cancel(session, document_id, tenant=TENANT)


def test_a_worker_stops_between_two_pages_of_a_cancelled_document(pipeline: Pipeline) -> None:
    engine = pipeline.engine = SlowEngine(page_s=0.1)
    pipeline.chunk_pages = MANY_PAGES
    document_id = pipeline.accept(tiff_of(MANY_PAGES))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    outcomes: list[ChunkOutcome] = []
    worker = threading.Thread(target=lambda: outcomes.append(pipeline.recognize(chunk_id)))
    worker.start()
    engine.is_reading.wait(timeout=60)

    cancel(pipeline, document_id)
    worker.join()

    assert outcomes == [ChunkOutcome()]
    assert engine.pages_read < MANY_PAGES
    written = [found.key for found in pipeline.store.list(keys.document_prefix(document_id))]
    assert written == [keys.source_key(document_id)]


def test_messages_about_a_cancelled_document_change_nothing(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(5))
    pipeline.split(document_id)
    first, *rest = pipeline.chunk_ids(document_id)
    pipeline.recognize(first)
    cancel(pipeline, document_id)

    outcomes = [pipeline.recognize(chunk_id) for chunk_id in rest]
    assembled = pipeline.assemble(document_id)
    split_again = pipeline.split(document_id)

    assert (outcomes, assembled, split_again) == ([ChunkOutcome()] * 2, "", 0)
    assert pipeline.document(document_id).state == DocumentState.CANCELLED
    assert [page.state for page in pipeline.pages(document_id)].count(PageState.OK) == 2


def test_the_sweep_sends_nothing_of_a_cancelled_document(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(3))
    pipeline.split(document_id)
    cancel(pipeline, document_id)
    pipeline.expire_leases()

    done = pipeline.sweep()

    assert (done.sent, done.given_up) == (dict.fromkeys(Work, 0), 0)
