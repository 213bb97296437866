import hashlib
from typing import Any

import pytest
from pydantic import ValidationError

from workers.ocr.errors import ExceedsMaxPagesError, NoSuchPageError
from workers.ocr.options import OcrOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"pages": "0"},
        {"pages": "5-2"},
        {"pages": ""},
        {"pages": 3},
        {"max_pages": 0},
        {"languages": ["english please"]},
        {"languages": "en"},
        {"languages": ["en"] * 11},
    ],
)
def test_an_option_with_a_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OcrOptions.model_validate(wrong)


def test_options_that_mean_the_same_have_the_same_digest() -> None:
    first = OcrOptions(pages="1-2,3", languages=("de", "EN", "de"))
    second = OcrOptions(pages="3,1-2", languages=("en", "de"))

    assert first.digest() == second.digest()
    assert OcrOptions.model_validate(first.model_dump(mode="json")) == second


def test_documents_without_newer_options_keep_the_digest_that_they_had() -> None:
    # What an Idempotency-Key of before is compared with.
    stated = b'{"mode":"auto","text_order":"reading","dpi":300}'

    assert OcrOptions(dpi=300).digest() == hashlib.sha256(stated).hexdigest()


def test_a_row_holds_no_newer_option_that_says_nothing() -> None:
    # Workers of before refuse what they do not know.
    assert OcrOptions().to_row() == {"mode": "auto", "text_order": "reading", "dpi": 200}
    chosen = OcrOptions(pages="2", languages=("de",))
    assert OcrOptions.from_row(chosen.to_row()) == chosen


@pytest.mark.parametrize(
    "other", [{"pages": "1"}, {"max_pages": 5}, {"languages": ["de"]}, {"mode": "ocr"}]
)
def test_other_options_have_another_digest(other: dict[str, Any]) -> None:
    assert OcrOptions.model_validate(other).digest() != OcrOptions().digest()


def test_a_limit_on_pages_changes_no_text() -> None:
    assert OcrOptions(max_pages=5).reading_digest() == OcrOptions().reading_digest()
    assert OcrOptions(pages="1").reading_digest() != OcrOptions().reading_digest()


def test_all_pages_are_read_unless_some_are_chosen() -> None:
    assert OcrOptions().page_indexes(3) == [0, 1, 2]
    assert OcrOptions(pages="2-9").page_indexes(3) == [1, 2]


def test_a_document_with_none_of_the_pages_is_refused_with_both_numbers() -> None:
    with pytest.raises(NoSuchPageError, match=r"3 pages, .* 4-9") as caught:
        OcrOptions(pages="4-9").page_indexes(3)

    assert caught.value.code == "no_such_page"


def test_a_document_with_more_pages_is_refused_with_both_numbers() -> None:
    with pytest.raises(ExceedsMaxPagesError, match=r"12 pages, .* allows 10\. Raise") as caught:
        OcrOptions(max_pages=10, pages="1").page_indexes(12)

    assert (caught.value.limit, caught.value.actual) == (10, 12)
    assert OcrOptions(max_pages=12).page_indexes(12)


def test_warnings_say_what_an_option_did_not_do() -> None:
    options = OcrOptions(pages="1-3", languages=("de",))

    assert OcrOptions().warnings(1) == []
    assert options.warnings(3) == ["languages_without_effect"]
    assert options.warnings(2) == ["languages_without_effect", "pages_beyond_end"]
