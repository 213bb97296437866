"""The use cases in their order, on a real database, a real broker and a real render child."""

import gzip
import json

import pytest
import redis

from db import chunks
from db.errors import StaleStateError
from db.outbox import Work
from db.states import DocumentState, PageState
from storage import keys
from storage.errors import ObjectCorruptError, StorageUnavailableError
from tests.support.engines import FailingEngine, ForgetfulEngine, NumberingEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.results import require_valid
from tests.support.stores import RefusingObjectStore
from tests.support.text_pdfs import PROSE, columns_by_rows, prose_page, write_lines
from workers.ocr.errors import InferenceError
from workers.recognize_chunk import ChunkOutcome

FIVE_PAGES = tiff_of(5)


def test_a_document_goes_in_and_its_text_comes_out_in_order(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)

    state = pipeline.finish(document_id)

    assert state == DocumentState.SUCCEEDED
    assert pipeline.result(document_id)["full_text"] == "\f".join(
        f"page {number}" for number in range(1, 6)
    )


def test_the_plain_text_object_is_the_full_text_of_the_result(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)

    pipeline.finish(document_id)

    text = pipeline.store.get(keys.result_text_key(document_id, 1)).decode()
    assert text == pipeline.result(document_id)["full_text"]


def test_a_second_split_message_changes_nothing(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)

    page_counts = [pipeline.split(document_id) for _ in range(2)]

    assert (page_counts, len(pipeline.chunk_ids(document_id))) == ([5, 0], 3)


def test_a_redelivered_chunk_is_recognized_once(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.split(document_id)
    chunk_id = pipeline.chunk_ids(document_id)[0]

    outcomes = [pipeline.recognize(chunk_id) for _ in range(2)]

    assert outcomes == [ChunkOutcome(pages_ok=2), ChunkOutcome()]


def test_an_assembly_that_fires_early_does_nothing(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.split(document_id)
    pipeline.recognize(pipeline.chunk_ids(document_id)[0])

    state = pipeline.assemble(document_id)

    assert (state, pipeline.document(document_id).state) == ("", DocumentState.RECOGNIZING)


def test_an_assembly_that_runs_twice_finishes_once(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.finish(document_id)

    again = pipeline.assemble(document_id)

    assert again == ""


def test_every_page_can_be_read_by_its_byte_range(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.finish(document_id)

    page = pipeline.pages(document_id)[3]

    member = pipeline.store.get(page.result_key or "")[page.result_start : page.result_stop]
    assert json.loads(gzip.decompress(member))["page_number"] == 4


def test_the_ledger_says_what_became_of_each_page(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)

    pipeline.finish(document_id)

    rows = pipeline.pages(document_id)
    assert {(row.state, row.route, row.line_count, row.model_version) for row in rows} == {
        (PageState.OK, "ocr", 1, "numbering@11111111")
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "empty"),
        (b"just a letter", "unsupported_media_type"),
        (b"%PDF-1.7 and nothing more", "damaged"),
    ],
)
def test_a_file_at_fault_ends_its_document_with_a_named_error(
    pipeline: Pipeline, body: bytes, code: str
) -> None:
    document_id = pipeline.accept(body)

    pipeline.split(document_id)

    document = pipeline.document(document_id)
    assert (document.state, document.error_code) == (DocumentState.FAILED, code)


def test_a_store_that_is_away_costs_no_attempt(
    pipeline: Pipeline, store: RefusingObjectStore
) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.split(document_id)
    chunk_id = pipeline.chunk_ids(document_id)[0]
    store.is_away = True
    for _ in range(5):
        with pytest.raises(StorageUnavailableError):
            pipeline.recognize(chunk_id)
        pipeline.expire_leases()

    store.is_away = False
    outcome = pipeline.recognize(chunk_id)

    assert outcome == ChunkOutcome(pages_ok=2)


def test_an_assembly_waits_for_a_store_that_is_away(
    pipeline: Pipeline, store: RefusingObjectStore
) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.split(document_id)
    for chunk_id in pipeline.chunk_ids(document_id):
        pipeline.recognize(chunk_id)
    store.is_away = True
    with pytest.raises(StorageUnavailableError):
        pipeline.assemble(document_id)

    store.is_away = False
    state = pipeline.assemble(document_id)

    assert state == DocumentState.SUCCEEDED


def test_a_page_of_a_lost_chunk_is_in_the_result_with_its_error(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(3))
    pipeline.split(document_id)
    lost, good = pipeline.chunk_ids(document_id)
    with pipeline.database.transaction() as session:
        chunks.give_up(session, lost, code="worker_lost", detail="x. y")
    pipeline.recognize(good)

    pipeline.assemble(document_id)

    pages = pipeline.result(document_id)["pages"]
    assert [page["state"] for page in pages] == ["failed", "failed", "ok"]


def test_a_document_whose_every_page_failed_has_failed_with_their_error(
    pipeline: Pipeline,
) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    with pipeline.database.transaction() as session:
        chunks.give_up(session, chunk_id, code="worker_lost", detail="x. y")

    pipeline.assemble(document_id)

    document = pipeline.document(document_id)
    assert (document.state, document.error_code) == (DocumentState.FAILED, "worker_lost")


def test_a_bug_fails_the_pages_of_its_chunk_and_is_raised(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.split(document_id)
    chunk_id = pipeline.chunk_ids(document_id)[0]
    pipeline.engine = FailingEngine(ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        pipeline.recognize(chunk_id)

    assert [row.error_code for row in pipeline.pages(document_id)] == [
        *["internal"] * 2,
        *[None] * 3,
    ]


def test_work_that_another_attempt_took_over_publishes_nothing(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    pipeline.engine = FailingEngine(StaleStateError("x"))

    outcome = pipeline.recognize(chunk_id)

    assert outcome == ChunkOutcome()
    assert [row.state for row in pipeline.pages(document_id)] == [PageState.QUEUED]


def test_an_engine_that_loses_a_page_publishes_nothing(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(2))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    pipeline.engine = ForgetfulEngine()

    with pytest.raises(RuntimeError, match="asked for pages"):
        pipeline.recognize(chunk_id)

    assert [row.error_code for row in pipeline.pages(document_id)] == ["internal"] * 2


def test_a_chunk_read_at_the_second_try_says_so(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    pipeline.engine = FailingEngine(InferenceError("x"))
    with pytest.raises(InferenceError):
        pipeline.recognize(chunk_id)
    pipeline.engine = NumberingEngine()

    pipeline.recognize(chunk_id)

    assert [row.attempts for row in pipeline.pages(document_id)] == [2]


def test_a_document_whose_chord_died_is_sent_to_its_assembly_at_once(
    pipeline: Pipeline, redis_url: str
) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    pipeline.engine = FailingEngine(InferenceError("x"))
    with pytest.raises(InferenceError):
        pipeline.recognize(chunk_id)
    pipeline.engine = NumberingEngine()

    pipeline.recognize(chunk_id)

    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("pagefleet:assemble") == 1


def test_a_result_without_one_good_page_fits_the_schema(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    with pipeline.database.transaction() as session:
        chunks.give_up(session, chunk_id, code="worker_lost", detail="x. y")

    pipeline.assemble(document_id)

    require_valid(pipeline.result(document_id))


def test_a_result_of_two_model_versions_fits_the_schema(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.split(document_id)
    first, *others = pipeline.chunk_ids(document_id)
    pipeline.recognize(first)
    pipeline.engine = NumberingEngine()
    pipeline.engine.model_version = "numbering@22222222"
    for chunk_id in others:
        pipeline.recognize(chunk_id)

    pipeline.assemble(document_id)

    result = pipeline.result(document_id)
    require_valid(result)
    assert result["model_version"] == "numbering@11111111, numbering@22222222"


def test_a_worker_that_died_is_replaced_by_the_sweep(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    with pipeline.database.transaction() as session:
        chunks.claim(session, chunk_id, worker="dead:1", lease_s=-1, max_attempts=3)

    swept = pipeline.sweep()
    pipeline.recognize(chunk_id)
    state = pipeline.assemble(document_id)

    assert (swept.sent[Work.RECOGNIZE], state) == (1, DocumentState.SUCCEEDED)


def test_a_source_that_changed_in_storage_is_not_read(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.store.put(keys.source_key(document_id), b"other bytes", media_type="image/tiff")

    with pytest.raises(ObjectCorruptError):
        pipeline.split(document_id)

    document = pipeline.document(document_id)
    assert (document.state, document.error_code) == (DocumentState.FAILED, "internal")


@pytest.mark.parametrize("chunk_pages", [1, 3, 16])
def test_the_result_does_not_depend_on_the_chunk_size(pipeline: Pipeline, chunk_pages: int) -> None:
    pipeline.chunk_pages = chunk_pages
    document_id = pipeline.accept(FIVE_PAGES)

    pipeline.finish(document_id)

    assert pipeline.result(document_id)["full_text"] == "\f".join(
        f"page {number}" for number in range(1, 6)
    )


@pytest.mark.parametrize("chunk_pages", [1, 2, 16])
def test_each_page_takes_its_route_whatever_chunk_it_is_in(
    pipeline: Pipeline, chunk_pages: int
) -> None:
    document, _ = prose_page()
    document.new_page()
    document.new_page().draw_circle((200, 200), 90)
    write_lines(document.new_page(), ["the end"])
    pipeline.chunk_pages = chunk_pages
    document_id = pipeline.accept(document.tobytes(), media_type="application/pdf", mode="auto")

    pipeline.finish(document_id)

    assert [row.route for row in pipeline.pages(document_id)] == ["text", "blank", "ocr", "text"]
    result = pipeline.result(document_id)
    assert result["full_text"].split() == [*" ".join(PROSE).split(), "page", "3", "the", "end"]
    assert [page["route_reason"] for page in result["pages"]] == [
        "sound_layer",
        "no_ink",
        "no_layer",
        "sound_layer",
    ]


def test_mode_text_recognizes_nothing(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES, mode="text")

    pipeline.finish(document_id)

    assert {row.route for row in pipeline.pages(document_id)} == {"text"}
    assert pipeline.result(document_id)["full_text"].strip() == ""


def test_stated_text_keeps_the_order_of_its_file_where_that_is_asked_for(
    pipeline: Pipeline,
) -> None:
    document, page = prose_page([])
    stated = columns_by_rows(page)
    document_id = pipeline.accept(
        document.tobytes(), media_type="application/pdf", mode="auto", text_order="file"
    )

    pipeline.finish(document_id)

    result = pipeline.result(document_id)
    assert result["options"]["text_order"] == "file"
    assert result["full_text"].splitlines() == stated
