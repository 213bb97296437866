"""Documents that are served from earlier ones: which, how, and which never."""

from typing import Any
from uuid import UUID

import pytest
import structlog
from sqlalchemy import text

from db import cancelling, content_cache, deleting, documents, retrying
from db.errors import StaleStateError
from db.ids import new_id
from db.outbox import Work
from db.states import DocumentState, PageState
from storage import keys, source_object
from storage.source_object import SourceAddress
from tests.support.engines import DEGRADATIONS, DegradingEngine, RememberingEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.plans import plan_of
from tests.support.results import require_valid
from tests.support.rows import NOT_DUE_S, TENANT, claim_split, make_document
from tests.support.stored_damage import DAMAGES, Damage
from workers.clear_storage import clear_storage
from workers.content_cache import Content, ContentCache
from workers.ocr.options import OcrOptions

FIVE_PAGES = tiff_of(5)
MODELS = RememberingEngine.model_version


@pytest.fixture
def cached(pipeline: Pipeline) -> Pipeline:
    """A worker whose splits look for earlier documents."""
    pipeline.engine = RememberingEngine()
    pipeline.cache = ContentCache(pipeline.store, transaction=pipeline.database.transaction)
    note_models(pipeline, MODELS)
    return pipeline


def note_models(pipeline: Pipeline, model_version: str) -> None:
    with pipeline.database.transaction() as session:
        content_cache.note_models(session, model_version)


def pages_read_for(pipeline: Pipeline, document_id: UUID) -> int:
    """Finish a document; return of how many pages it took a reading."""
    before = len(pipeline.engine.page_indexes)
    pipeline.finish(document_id)
    return len(pipeline.engine.page_indexes) - before


def finished(pipeline: Pipeline, **options: Any) -> UUID:
    document_id = pipeline.accept(FIVE_PAGES, **options)
    assert pipeline.finish(document_id) == DocumentState.SUCCEEDED
    return document_id


def delete(pipeline: Pipeline, document_id: UUID) -> None:
    with pipeline.database.transaction() as session:
        deleting.mark(session, document_id, tenant=TENANT, writers_s=0)


def test_a_document_of_the_same_content_is_served_without_being_read(cached: Pipeline) -> None:
    first = finished(cached)
    second = cached.accept(FIVE_PAGES)

    assert pages_read_for(cached, second) == 0

    earlier, row = cached.document(first), cached.document(second)
    assert row.state == DocumentState.SUCCEEDED
    assert (row.cached_from, row.read_at) == (first, earlier.finished_at)
    assert (row.page_count, row.pages_ok, row.model_version) == (5, 5, MODELS)
    assert cached.chunk_ids(second) == []


def test_the_result_is_the_documents_own_and_says_whence_it_is(cached: Pipeline) -> None:
    first = finished(cached)
    second = cached.accept(FIVE_PAGES)
    cached.finish(second)

    result, earlier = cached.result(second), cached.result(first)

    require_valid(result)
    read_at = cached.document(first).finished_at
    assert read_at is not None
    own = {"document_id": str(second), "cached": True, "read_at": read_at.isoformat()}
    assert result == {**earlier, **own}
    assert "cached" not in earlier


def test_the_ledger_of_a_served_document_is_that_of_the_earlier_one(cached: Pipeline) -> None:
    first = finished(cached)
    second = cached.accept(FIVE_PAGES)
    cached.finish(second)

    pages = cached.pages(second)

    assert [(page.state, page.attempts) for page in pages] == [(PageState.OK, 0)] * 5
    assert [page.line_count for page in pages] == [page.line_count for page in cached.pages(first)]
    prefix = keys.document_prefix(second)
    assert all((page.result_key or "").startswith(prefix) for page in pages)


@pytest.mark.parametrize("options", [{"dpi": 300}, {"mode": "auto"}, {"pages": "1-5"}])
def test_other_options_are_read(cached: Pipeline, options: dict[str, Any]) -> None:
    finished(cached)

    assert pages_read_for(cached, cached.accept(FIVE_PAGES, **options)) == 5


def test_another_content_is_read(cached: Pipeline) -> None:
    finished(cached)

    assert pages_read_for(cached, cached.accept(tiff_of(4))) == 4


def test_nobody_is_served_from_another_tenants_document(cached: Pipeline) -> None:
    finished(cached, tenant="stranger")

    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == 5


def test_pages_that_were_left_out_stay_left_out(cached: Pipeline) -> None:
    first = finished(cached, pages="2,4-5")
    second = cached.accept(FIVE_PAGES, pages="4-5,2")

    assert pages_read_for(cached, second) == 0

    assert cached.result(second)["full_text"] == cached.result(first)["full_text"]
    row = cached.document(second)
    assert (row.pages_ok, row.pages_skipped, row.page_estimate) == (3, 2, 3)


def test_a_limit_on_pages_holds_for_what_would_be_served(cached: Pipeline) -> None:
    finished(cached)
    fitting = cached.accept(FIVE_PAGES, max_pages=5)
    too_large = cached.accept(FIVE_PAGES, max_pages=4)

    cached.split(too_large)

    assert pages_read_for(cached, fitting) == 0
    assert cached.document(too_large).error_code == "exceeds_max_pages"


def test_what_other_models_read_is_not_served(cached: Pipeline) -> None:
    finished(cached)
    note_models(cached, "newer@22222222")

    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == 5


def test_models_that_were_put_back_serve_what_they_read(cached: Pipeline) -> None:
    finished(cached)
    note_models(cached, "newer@22222222")
    note_models(cached, MODELS)

    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == 0


@pytest.mark.parametrize(("bundle", "read"), [(MODELS, 0), ("newer@22222222", 5)])
def test_a_fleet_that_is_to_read_with_other_models_serves_nothing_of_before(
    cached: Pipeline, bundle: str, read: int
) -> None:
    # Its splits start before the first slot that has the new models.
    finished(cached)
    cached.cache = ContentCache(
        cached.store, transaction=cached.database.transaction, bundle=bundle
    )

    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == read


def test_engine_and_precision_are_part_of_the_models(cached: Pipeline) -> None:
    finished(cached)
    note_models(cached, f"{MODELS}+openvino-bf16")

    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == 5


def test_nothing_is_served_before_a_slot_has_said_what_it_reads_with(pipeline: Pipeline) -> None:
    pipeline.engine = RememberingEngine()
    pipeline.cache = ContentCache(pipeline.store, transaction=pipeline.database.transaction)
    finished(pipeline)

    assert pages_read_for(pipeline, pipeline.accept(FIVE_PAGES)) == 5


@pytest.mark.parametrize("how", DEGRADATIONS)
def test_a_degraded_result_is_never_served(cached: Pipeline, how: str) -> None:
    cached.engine = DegradingEngine(DEGRADATIONS[how])
    cached.finish(cached.accept(FIVE_PAGES))

    second = cached.accept(FIVE_PAGES)

    assert pages_read_for(cached, second) == 5
    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == 0


def test_a_deleted_document_serves_nobody(cached: Pipeline) -> None:
    delete(cached, finished(cached))

    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == 5


def test_a_document_that_is_deleted_while_its_pages_are_copied_serves_nobody(
    cached: Pipeline,
) -> None:
    first = finished(cached)
    second = cached.accept(FIVE_PAGES)
    with cached.database.transaction() as session:
        claim = claim_split(session, second)
    assert cached.cache is not None

    def delete_the_first() -> None:
        if cached.document(first).state == DocumentState.SUCCEEDED:
            delete(cached, first)

    content = Content(TENANT, cached.document(second).sha256, OcrOptions(mode="ocr"))
    served = cached.cache.serve(claim, content, check=delete_the_first, assemble_after_s=1)

    row = cached.document(second)
    assert (served, row.state, row.cached_from) == (None, DocumentState.SPLITTING, None)


def test_a_document_whose_pages_are_gone_is_read_again_and_asked_no_more(
    cached: Pipeline,
) -> None:
    first = finished(cached)
    lost = [page.result_key for page in cached.pages(first) if page.page_index == 4]
    cached.store.delete([key for key in lost if key])
    second = cached.accept(FIVE_PAGES)

    assert pages_read_for(cached, second) == 5

    assert cached.document(second).state == DocumentState.SUCCEEDED
    assert cached.document(first).content_key is None
    third = cached.accept(FIVE_PAGES)
    assert pages_read_for(cached, third) == 0
    assert cached.document(third).cached_from == second


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_document_whose_pages_cannot_be_used_is_read_again(
    cached: Pipeline, damage: Damage
) -> None:
    first = finished(cached)
    damage(cached.store, [page.result_key or "" for page in cached.pages(first)])
    second = cached.accept(FIVE_PAGES)

    assert pages_read_for(cached, second) == 5

    assert cached.document(second).state == DocumentState.SUCCEEDED
    assert pages_read_for(cached, cached.accept(FIVE_PAGES)) == 0


def test_a_copy_outlives_the_document_that_it_was_made_of(cached: Pipeline) -> None:
    first = finished(cached)
    read_at = cached.document(first).finished_at
    second = cached.accept(FIVE_PAGES)
    cached.finish(second)
    before = cached.result(second)
    delete(cached, first)
    clear_storage(transaction=cached.database.transaction, store=cached.store, rules=cached.rules)
    assert list(cached.store.list(keys.document_prefix(first))) == []

    third = cached.accept(FIVE_PAGES)

    assert cached.result(second) == before
    assert all(cached.store.get(page.result_key or "") for page in cached.pages(second))
    assert pages_read_for(cached, third) == 0
    row = cached.document(third)
    assert (row.cached_from, row.read_at) == (second, read_at)


def test_an_object_of_a_bucket_is_served_once_its_bytes_are_known(cached: Pipeline) -> None:
    finished(cached)
    scans = cached.store.other_bucket("scans")
    scans.put("in/a.tif", FIVE_PAGES, media_type="image/tiff")
    source = source_object.describe(cached.store, SourceAddress("scans", "in/a.tif"))
    document = make_document(
        id=new_id(),
        source=source.to_row(),
        media_type="application/octet-stream",
        sha256="",
        size_bytes=source.size_bytes,
        options=OcrOptions(mode="ocr").to_row(),
    )
    with cached.database.transaction() as session:
        documents.insert(session, document, dispatch_after_s=NOT_DUE_S)

    assert pages_read_for(cached, document.id) == 0

    row = cached.document(document.id)
    assert row.cached_from is not None
    assert cached.store.get(keys.source_key(document.id)) == FIVE_PAGES
    assert cached.result(document.id)["source"]["sha256"] == row.sha256


def test_a_split_that_lost_its_document_serves_it_nothing(cached: Pipeline) -> None:
    finished(cached)
    second = cached.accept(FIVE_PAGES)
    with cached.database.transaction() as session:
        zombie = claim_split(session, second, lease_s=-1)
        claim_split(session, second)
    assert cached.cache is not None
    content = Content(TENANT, cached.document(second).sha256, OcrOptions(mode="ocr"))

    with pytest.raises(StaleStateError):
        cached.cache.serve(zombie, content, check=lambda: None, assemble_after_s=1)

    assert cached.pages(second) == []


def test_a_served_document_whose_assembly_was_lost_is_found_by_the_sweep(
    cached: Pipeline,
) -> None:
    finished(cached)
    second = cached.accept(FIVE_PAGES)
    cached.split(second)
    cached.expire_leases()

    due = cached.sweep()

    assert due.sent[Work.ASSEMBLE] == 1


def test_a_served_document_that_was_cancelled_and_retried_needs_no_reading(
    cached: Pipeline,
) -> None:
    finished(cached)
    second = cached.accept(FIVE_PAGES)
    cached.split(second)
    with cached.database.transaction() as session:
        cancelling.cancel(session, second, tenant=TENANT)
        retrying.retry(session, second, tenant=TENANT)

    assert cached.assemble(second) == DocumentState.SUCCEEDED
    assert cached.result(second)["cached"] is True


def test_the_log_says_whether_a_document_was_served(cached: Pipeline) -> None:
    with structlog.testing.capture_logs() as lines:
        first = finished(cached)
        cached.finish(cached.accept(FIVE_PAGES))

    asked = [line for line in lines if line["event"] == "cache asked"]
    assert [(line["is_hit"], line.get("earlier")) for line in asked] == [
        (False, None),
        (True, str(first)),
    ]


def test_served_documents_are_counted_among_those_that_ended(cached: Pipeline) -> None:
    finished(cached)
    for _ in range(2):
        cached.finish(cached.accept(FIVE_PAGES))

    with cached.database.transaction() as session:
        use = content_cache.cache_use(session, window_s=300)
        before = content_cache.cache_use(session, window_s=0)

    assert (use.finished, use.served) == (3, 2)
    assert (before.finished, before.served) == (0, 0)


def test_documents_of_one_content_are_found_without_looking_at_others(cached: Pipeline) -> None:
    with cached.database.transaction() as session:
        for number in range(500):
            document = make_document(state="succeeded", content_key=f"{number % 250}")
            documents.insert(session, document, dispatch_after_s=NOT_DUE_S)
    with cached.database.transaction() as session:
        session.execute(text("ANALYZE documents"))
        # Of a tenant with millions, walking its documents in their order would be a long way.
        plan = plan_of(
            session,
            lambda: content_cache.find(session, tenant=TENANT, content_key="7", besides=new_id()),
        )

    assert "Index Scan using ix_documents_content_key" in plan
