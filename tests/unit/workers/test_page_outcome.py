"""What is kept of a page that was read, or failed."""

from db.page_cache import KEPT_COLUMNS
from db.states import PageState
from tests.support.pages import make_page
from workers.ocr.page_image import PageFailure
from workers.page_outcome import outcome_of


def test_all_that_is_known_of_a_read_page_goes_with_it_when_it_serves_another() -> None:
    outcome = outcome_of(make_page(["one"]), "models@1", content_key=b"key")

    # How long the reading took is the other page's own.
    assert {*outcome.record.values} == {*KEPT_COLUMNS, "durations"}


def test_a_page_that_was_read_has_its_place_and_its_page_object() -> None:
    outcome = outcome_of(make_page(["one"], page_index=4), "models@1")

    assert (outcome.record.page_index, outcome.record.state) == (4, PageState.OK)
    assert outcome.body["page_number"] == 5
    assert outcome.record.values["content_key"] is None


def test_a_page_that_failed_says_why_and_serves_nobody() -> None:
    outcome = outcome_of(PageFailure(2, "damaged", "It is."), "models@1", content_key=b"key")

    assert (outcome.record.page_index, outcome.record.state) == (2, PageState.FAILED)
    assert outcome.record.values == {
        "model_version": "models@1",
        "error_code": "damaged",
        "error_detail": "It is.",
    }
