import pytest

from tests.support.pages import make_page
from workers.ocr.page_image import PageFailure
from workers.ocr.page_text import page_text
from workers.ocr.result import page_json


def test_a_page_object_has_the_published_fields() -> None:
    page = page_json(make_page(["one two", "three"], ["four"], page_index=4))

    assert page["page_number"] == 5
    assert page["lines"][0] == {
        "id": 0,
        "text": "one two",
        "polygon": [[10.0, 10.0], [110.0, 10.0], [110.0, 30.0], [10.0, 30.0]],
        "confidence": 0.9,
        "detection_score": 0.8765,
        "words": [
            {"text": "one", "box": [10, 10.0, 50.3, 30.0]},
            {"text": "two", "box": [10, 10.0, 50.3, 30.0]},
        ],
    }
    assert page["blocks"][0] == {
        "id": 0,
        "type": "text",
        "polygon": [[10.0, 10.0], [110.0, 10.0], [110.0, 60.0], [10.0, 60.0]],
        "lines": [0, 1],
    }
    assert page["reading_order"] == [0, 1, 2]
    assert page["mean_confidence"] == pytest.approx(0.9)
    assert page["skew_deg"] == 0.12
    assert page["seconds"] == {"render": 0.5, "detect": 0.25, "recognize": 1.0}
    assert page["truncated"] is False


def test_a_page_with_fewer_crops_kept_than_found_says_so() -> None:
    page = page_json(make_page(["a"], crops_found=7))

    assert (page["crops_found"], page["crops_kept"], page["truncated"]) == (7, 1, True)


def test_a_page_without_text_has_no_confidence() -> None:
    page = page_json(make_page())

    assert page["mean_confidence"] is None
    assert page["blocks"] == page["lines"] == page["reading_order"] == []


def test_a_failed_page_says_why() -> None:
    page = page_json(PageFailure(2, "page_timeout", "The page took too long."))

    assert page == {
        "page_number": 3,
        "state": "failed",
        "error": {"code": "page_timeout", "message": "The page took too long."},
    }


def test_the_text_has_a_line_a_line_and_a_blank_line_between_blocks() -> None:
    assert page_text(page_json(make_page(["one", "two"], ["three"]))) == "one\ntwo\n\nthree"


def test_a_failed_page_has_no_text() -> None:
    assert page_text(page_json(PageFailure(0, "damaged", "…"))) == ""
