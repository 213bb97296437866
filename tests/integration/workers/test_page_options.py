"""Pages that are chosen, and documents that have too many: on a real database and a real reader."""

import pytest

from db import chunks
from db.states import DocumentState, PageState
from tests.support.engines import RememberingEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.results import require_valid

FIVE_PAGES = tiff_of(5)


def test_the_pages_that_are_asked_for_are_read_and_no_others(pipeline: Pipeline) -> None:
    pipeline.engine = RememberingEngine()
    document_id = pipeline.accept(FIVE_PAGES, pages="4,1-2")

    state = pipeline.finish(document_id)

    result, row = pipeline.result(document_id), pipeline.document(document_id)
    require_valid(result)
    assert state == DocumentState.SUCCEEDED
    assert pipeline.engine.page_indexes == [0, 1, 3]
    assert result["options"]["pages"] == "1-2,4"
    assert [page["state"] for page in result["pages"]] == ["ok", "ok", "skipped", "ok", "skipped"]
    assert [page["page_number"] for page in result["pages"]] == [1, 2, 3, 4, 5]
    assert result["full_text"] == "page 1\fpage 2\f\fpage 4\f"
    assert "warnings" not in result
    assert (row.page_count, row.pages_ok, row.pages_skipped) == (5, 3, 2)
    assert row.page_estimate == 3


def test_a_page_that_was_left_out_is_no_failure_to_retry(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES, pages="2-3")
    pipeline.split(document_id)

    states = [page.state for page in pipeline.pages(document_id)]

    left_out = PageState.SKIPPED
    assert states == [left_out, PageState.QUEUED, PageState.QUEUED, left_out, left_out]
    with pipeline.database.transaction() as session:
        planned = chunks.list_of_document(session, document_id)
    assert [(chunk.page_start, chunk.page_stop) for chunk in planned] == [(1, 3)]


def test_pages_behind_the_last_one_are_told_and_the_others_read(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES, pages="5-8", languages=("de",))

    assert pipeline.finish(document_id) == DocumentState.SUCCEEDED

    result = pipeline.result(document_id)
    require_valid(result)
    assert result["warnings"] == ["languages_without_effect", "pages_beyond_end"]
    assert result["full_text"] == "\f\f\f\fpage 5"


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (
            {"max_pages": 4},
            "exceeds_max_pages",
            "5 pages, and its option max_pages allows 4. Raise",
        ),
        ({"pages": "6-7"}, "no_such_page", "5 pages, and none of those"),
    ],
)
def test_a_document_that_its_options_exclude_fails_with_the_numbers_and_the_remedy(
    pipeline: Pipeline, options: dict[str, object], code: str, told: str
) -> None:
    document_id = pipeline.accept(FIVE_PAGES, **options)

    pipeline.split(document_id)

    row = pipeline.document(document_id)
    assert (row.state, row.error_code) == (DocumentState.FAILED, code)
    assert told in (row.error_detail or "")
    assert row.result_key is None


def test_a_document_of_just_as_many_pages_is_read(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(FIVE_PAGES, max_pages=5)

    assert pipeline.finish(document_id) == DocumentState.SUCCEEDED
