"""Pages that are served from earlier ones of their picture: which, how, and which never."""

from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
import structlog
from sqlalchemy import text

from db import content_cache, deleting, page_cache
from db.states import DocumentState, PageState
from storage import keys
from tests.support.engines import DEGRADATIONS, DegradingEngine, RememberingEngine
from tests.support.pipeline import Pipeline, gray_tiff
from tests.support.plans import plan_of
from tests.support.results import require_valid
from tests.support.rows import TENANT
from tests.support.stored_damage import DAMAGES, Damage
from workers.clear_storage import clear_storage
from workers.page_cache import PageCache

LEDGER = gray_tiff([250, 200, 150])
"""Read by the engine here as "page 1", "page 2" and "page 3"."""


@pytest.fixture
def cached(pipeline: Pipeline) -> Pipeline:
    """A worker that looks for earlier pages, five of them in a chunk."""
    pipeline.engine = RememberingEngine()
    pipeline.page_cache = PageCache(pipeline.store, transaction=pipeline.database.transaction)
    pipeline.chunk_pages = 5
    return pipeline


def finished(pipeline: Pipeline, body: bytes = LEDGER, **options: Any) -> UUID:
    document_id = pipeline.accept(body, **options)
    assert pipeline.finish(document_id) == DocumentState.SUCCEEDED
    return document_id


def pages_read_for(pipeline: Pipeline, body: bytes = LEDGER, **options: Any) -> list[int]:
    """Send and finish a document; return the positions of those of its pages that were read."""
    pipeline.engine.page_indexes.clear()
    pipeline.finish(pipeline.accept(body, **options))
    return list(pipeline.engine.page_indexes)


def delete(pipeline: Pipeline, document_id: UUID) -> None:
    with pipeline.database.transaction() as session:
        deleting.mark(session, document_id, tenant=TENANT, writers_s=0)


def texts_of(result: dict[str, Any]) -> list[str]:
    return [page["lines"][0]["text"] for page in result["pages"]]


def test_a_page_of_the_same_picture_is_served_and_keeps_its_place(cached: Pipeline) -> None:
    finished(cached)
    cached.engine.page_indexes.clear()

    second = finished(cached, gray_tiff([10, 200, 20, 150, 250]))

    result = cached.result(second)
    assert cached.engine.page_indexes == [0, 2]
    assert [page["page_number"] for page in result["pages"]] == [1, 2, 3, 4, 5]
    assert texts_of(result) == ["page 1", "page 2", "page 3", "page 3", "page 1"]
    assert [page.get("cached", False) for page in result["pages"]] == [
        False,
        True,
        False,
        True,
        True,
    ]


def test_the_result_says_what_was_served(cached: Pipeline) -> None:
    first = finished(cached)
    second = finished(cached, gray_tiff([150, 10]))

    result = cached.result(second)

    require_valid(result)
    served, earlier = result["pages"][0], cached.result(first)["pages"][2]
    own = {"page_number": 1, "seconds": served["seconds"], "cached": True}
    assert served == {**earlier, **own}
    assert (served["seconds"]["detect"], served["seconds"]["recognize"]) == (0, 0)
    assert result["usage"]["pages_cached"] == 1
    assert "pages_cached" not in cached.result(first)["usage"]
    assert cached.document(second).pages_cached == 1


def test_the_ledger_knows_of_a_served_page_what_it_knew_of_the_earlier_one(
    cached: Pipeline,
) -> None:
    first = finished(cached)
    second = finished(cached, gray_tiff([150]))

    (row,), earlier = cached.pages(second), cached.pages(first)[2]

    assert (row.state, row.line_count, row.route) == (PageState.OK, 1, "ocr")
    assert (row.mean_confidence, row.model_version) == (
        earlier.mean_confidence,
        earlier.model_version,
    )
    assert (row.result_key or "").startswith(keys.document_prefix(second))


def test_another_tenant_is_served_nothing(cached: Pipeline) -> None:
    finished(cached)

    assert pages_read_for(cached, tenant="another") == [0, 1, 2]


def test_other_models_read_again(cached: Pipeline) -> None:
    finished(cached)
    cached.engine = RememberingEngine("newer@22222222")

    assert pages_read_for(cached) == [0, 1, 2]
    assert pages_read_for(cached) == []


@pytest.mark.parametrize("how", DEGRADATIONS)
def test_a_degraded_page_is_never_served(cached: Pipeline, how: str) -> None:
    cached.engine = DegradingEngine(DEGRADATIONS[how])
    cached.finish(cached.accept(LEDGER))

    assert pages_read_for(cached) == [2]
    assert pages_read_for(cached) == []


def test_pages_of_a_deleted_document_serve_nobody(cached: Pipeline) -> None:
    delete(cached, finished(cached))

    assert pages_read_for(cached) == [0, 1, 2]


def test_a_page_whose_object_is_gone_is_read_again_and_asked_no_more(cached: Pipeline) -> None:
    first = finished(cached)
    cached.store.delete([page.result_key or "" for page in cached.pages(first)])

    assert pages_read_for(cached) == [0, 1, 2]

    assert [page.content_key for page in cached.pages(first)] == [None] * 3
    assert pages_read_for(cached) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_page_whose_object_cannot_be_used_is_read_again(cached: Pipeline, damage: Damage) -> None:
    first = finished(cached)
    damage(cached.store, [page.result_key or "" for page in cached.pages(first)])

    assert pages_read_for(cached) == [0, 1, 2]
    assert pages_read_for(cached) == []


def test_a_served_page_outlives_the_document_that_it_was_made_of(cached: Pipeline) -> None:
    first = finished(cached)
    second = finished(cached, gray_tiff([200]))
    before = cached.result(second)
    delete(cached, first)
    clear_storage(transaction=cached.database.transaction, store=cached.store, rules=cached.rules)

    assert list(cached.store.list(keys.document_prefix(first))) == []
    assert cached.result(second) == before
    assert pages_read_for(cached, gray_tiff([200])) == []


def test_without_the_cache_every_page_is_read(cached: Pipeline) -> None:
    finished(cached)
    cached.page_cache = None

    assert pages_read_for(cached) == [0, 1, 2]


def test_the_log_says_how_many_pages_were_served(cached: Pipeline) -> None:
    finished(cached)
    with structlog.testing.capture_logs() as lines:
        finished(cached, gray_tiff([10, 200]))

    (asked,) = [line for line in lines if line["event"] == "page cache asked"]
    assert (asked["asked"], asked["hits"]) == (2, 1)


def test_served_pages_are_counted(cached: Pipeline) -> None:
    finished(cached)
    finished(cached, gray_tiff([10, 200, 150]))

    with cached.database.transaction() as session:
        use = content_cache.cache_use(session, window_s=300)

    assert (use.finished, use.served, use.served_pages) == (2, 0, 2)


def test_a_page_is_found_without_looking_at_others(cached: Pipeline) -> None:
    document_id = finished(cached)
    with cached.database.transaction() as session:
        session.execute(
            text(
                "INSERT INTO pages (document_id, page_index, generation, state, attempts,"
                " truncated, content_key)"
                " SELECT :id, number, 1, 'ok', 1, false, sha256(number::text::bytea)"
                " FROM generate_series(10, 2000) number"
            ),
            {"id": document_id},
        )
    with cached.database.transaction() as session:
        session.execute(text("ANALYZE pages"))
        plan = plan_of(session, lambda: page_cache.find(session, sha256(b"77").digest()))

    assert "ix_pages_content_key" in plan
