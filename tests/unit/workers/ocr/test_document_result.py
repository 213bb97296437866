import json
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError

from tests.support.pages import make_page
from tests.support.results import SCHEMA, require_valid
from workers.ocr.document_result import (
    DocumentSource,
    DocumentTotals,
    document_json,
    full_text,
)
from workers.ocr.modes import Route, RouteReason
from workers.ocr.options import DocumentWarning, OcrOptions
from workers.ocr.page_image import PageFailure
from workers.ocr.result import page_json, skipped_page_json

SOURCE = DocumentSource("scan.pdf", "0" * 64, "application/pdf", 1234)
OK = page_json(make_page(["one", "two"], ["three"]))
CUT = page_json(make_page(["four"], page_index=1, crops_found=9))
FAILED = page_json(PageFailure(2, "damaged", "The page cannot be decoded."))
SKIPPED = skipped_page_json(3)


def document(*pages: dict[str, Any]) -> dict[str, Any]:
    return document_json(
        pages,
        document_id="0198f3a2-0000-7000-8000-000000000000",
        source=SOURCE,
        model_version="ppocrv6-small@0123456789",
        options=OcrOptions().model_dump(mode="json"),
    )


def validate(result: dict[str, Any]) -> None:
    require_valid(json.loads(json.dumps(result)))


@pytest.mark.parametrize(
    ("pages", "state"),
    [
        ([OK], "succeeded"),
        ([OK, FAILED], "partly_succeeded"),
        ([FAILED], "failed"),
        ([OK, SKIPPED], "succeeded"),
        ([OK, FAILED, SKIPPED], "partly_succeeded"),
        ([FAILED, SKIPPED], "failed"),
        ([], "failed"),
    ],
)
def test_the_state_follows_the_pages(pages: list[dict[str, Any]], state: str) -> None:
    assert document(*pages)["state"] == state


def test_usage_sums_the_pages_that_have_a_result() -> None:
    totals = DocumentTotals()
    for page in (OK, CUT, FAILED, SKIPPED):
        totals.add(page)

    assert totals.usage() == {
        "pages": 4,
        "pages_ok": 2,
        "pages_failed": 1,
        "pages_skipped": 1,
        "pixels": 2 * 1654 * 2339,
        "crops": 4,
        "seconds": {"render": 1.0, "detect": 0.5, "recognize": 2.0},
    }


def test_a_document_is_truncated_when_one_of_its_pages_is() -> None:
    assert document(OK, CUT)["truncated"] is True
    assert document(OK)["truncated"] is False


@pytest.mark.parametrize(
    ("pages", "is_whole"),
    [
        ([OK, SKIPPED], True),
        ([OK, CUT], False),
        ([OK, FAILED], False),
        ([], False),
        ([OK, {**OK, "warnings": ["reduced_resolution"]}], False),
        ([OK, {**OK, "dpi": 199.5}], False),
        ([{**OK, "dpi": 240}], True),
    ],
)
def test_a_document_is_whole_when_nothing_is_missing_from_it(
    pages: list[dict[str, Any]], *, is_whole: bool
) -> None:
    totals = DocumentTotals()
    for page in pages:
        totals.add(page)

    assert totals.is_whole(dpi=200) is is_whole


def test_an_image_of_its_own_resolution_is_whole() -> None:
    totals = DocumentTotals()
    totals.add({**OK, "dpi": 72})

    assert totals.is_whole(dpi=0)


def test_the_full_text_has_a_part_for_every_page() -> None:
    assert full_text([OK, FAILED, SKIPPED, CUT]) == "one\ntwo\n\nthree\f\f\ffour"


def test_the_header_holds_everything_but_text_and_pages_in_their_order() -> None:
    result = document(OK)
    totals = DocumentTotals()
    totals.add(OK)

    header = totals.header(
        document_id=result["document_id"],
        source=SOURCE,
        model_version=result["model_version"],
        options=result["options"],
    )

    assert [*header, "full_text", "pages"] == list(result)
    assert {**header, "full_text": result["full_text"], "pages": result["pages"]} == result


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_a_result_is_valid() -> None:
    validate(document(OK, CUT, FAILED, SKIPPED))


def test_a_result_with_warnings_is_valid_and_says_them() -> None:
    options = OcrOptions(pages="2-9,1", max_pages=50, languages=("en", "De"))
    result = document_json(
        [OK, CUT],
        document_id="x",
        source=SOURCE,
        model_version="ppocrv6-small@0123456789",
        options=options.model_dump(mode="json"),
        warnings=options.warnings(2),
    )

    validate(result)
    assert result["warnings"] == ["languages_without_effect", "pages_beyond_end"]
    assert (result["options"]["pages"], result["options"]["languages"]) == ("1-9", ["de", "en"])


def test_a_result_that_was_served_says_when_it_was_read() -> None:
    totals = DocumentTotals()
    totals.add(OK)
    options = OcrOptions().model_dump(mode="json")
    read_at = "2026-01-01T00:00:00+00:00"

    header = totals.header(
        document_id="x", source=SOURCE, model_version="m@1", options=options, read_at=read_at
    )

    validate({**header, "full_text": "", "pages": [OK]})
    assert (header["cached"], header["read_at"]) == (True, read_at)


def test_the_schema_has_every_warning() -> None:
    described = SCHEMA["properties"]["warnings"]

    assert described["items"]["enum"] == list(get_args(DocumentWarning))
    assert all(warning in described["description"] for warning in get_args(DocumentWarning))


def test_a_result_with_a_field_too_many_is_not_valid() -> None:
    result = document(OK)
    result["pages"] = [{**OK, "surprise": 1}]

    with pytest.raises(ValidationError):
        validate(result)


def test_the_schema_has_every_option() -> None:
    assert set(SCHEMA["properties"]["options"]["properties"]) == set(OcrOptions.model_fields)


def undescribed(node: Any, path: str) -> list[str]:
    """Return the paths of properties without a description of their own or of their reference."""
    if isinstance(node, list):
        return [name for i, each in enumerate(node) for name in undescribed(each, f"{path}/{i}")]
    if not isinstance(node, dict):
        return []
    bare = [
        f"{path}/{name}"
        for name, field in node.get("properties", {}).items()
        if "description" not in field
        and "description" not in SCHEMA["$defs"].get(field.get("$ref", "").rpartition("/")[2], {})
    ]
    deeper = [name for key, each in node.items() for name in undescribed(each, f"{path}/{key}")]
    return bare + deeper


def test_every_field_of_the_schema_is_described() -> None:
    assert undescribed(SCHEMA, "") == []


def test_the_schema_has_every_route_and_reason() -> None:
    page = SCHEMA["$defs"]["page"]["properties"]

    assert page["route"]["enum"] == list(get_args(Route))
    assert page["route_reason"]["enum"] == list(get_args(RouteReason))
    assert all(reason in page["route_reason"]["description"] for reason in get_args(RouteReason))
