"""docs/result.md explains every field of the result, as the schema and the code have it."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

from tests.support.guides import table_rows
from tests.support.results import SCHEMA
from workers.ocr.document_result import DocumentSource, document_json
from workers.ocr.geometry import Box, Quad
from workers.ocr.modes import RouteReason
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure
from workers.ocr.result import Block, PageResult, TextLine, Word, page_json

ROWS = [row for row in table_rows("result.md") if row[0].startswith("`")]
REASONS = {row[0].strip("`") for row in ROWS if len(row) == 3 and row[1].startswith("`")}
MEANINGS = {row[0].strip("`"): row[2] for row in ROWS if not row[1].startswith("`")}


def fields_of_schema(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each field of the schema with its path, as ``pages[].lines[].text``."""
    reference = node.get("$ref")
    if reference is not None:
        yield from fields_of_schema(SCHEMA["$defs"][reference.rpartition("/")[2]], path)
    for choice in node.get("oneOf", ()):
        yield from fields_of_schema(choice, path)
    for name, field in node.get("properties", {}).items():
        below = f"{path}.{name}".lstrip(".")
        yield below, {**field, "is_required": name in node["required"]}
        yield from fields_of_schema(field, below)
    if "items" in node:
        yield from fields_of_schema(node["items"], f"{path}[]")


def fields_of_result(node: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each field of a result."""
    if isinstance(node, dict):
        for name, value in node.items():
            below = f"{path}.{name}".lstrip(".")
            yield below
            yield from fields_of_result(value, below)
    if isinstance(node, list):
        for value in node:
            yield from fields_of_result(value, f"{path}[]")


FIELDS = list(fields_of_schema(SCHEMA))
REQUIRED = {path for path, field in FIELDS if field["is_required"]}
CHOICES = [
    (path, choice if isinstance(choice, str) else json.dumps(choice))
    for path, field in FIELDS
    if not path.endswith("route_reason")
    for choice in (*field.get("enum", ()), *([field["const"]] if "const" in field else ()))
    if choice is not None
]


def test_the_guide_explains_each_field_of_the_schema_and_no_other() -> None:
    assert sorted(MEANINGS) == sorted({path for path, _ in FIELDS})


@pytest.mark.parametrize(("path", "choice"), CHOICES)
def test_the_guide_names_each_value_that_a_field_may_have(path: str, choice: str) -> None:
    assert f"`{choice}`" in MEANINGS[path]


@pytest.mark.parametrize("path", sorted(MEANINGS))
def test_a_field_is_explained(path: str) -> None:
    assert MEANINGS[path]


def test_the_guide_explains_each_reason_of_a_route() -> None:
    assert set(get_args(RouteReason)) == REASONS


def test_the_guide_explains_what_the_code_writes() -> None:
    quad = Quad(np.array([[1, 1], [9, 1], [9, 5], [1, 5]], np.float32))
    line = TextLine("a", quad, 0.9, 0.8, (Word("a", Box(1, 1, 9, 5)),))
    page = PageResult(
        page_index=0,
        width_px=10,
        height_px=10,
        dpi=200,
        rotation_deg=0,
        skew_deg=0.0,
        crops_found=1,
        crops_kept=1,
        lines=(line,),
        blocks=(Block((0,)),),
        warnings=("reduced_resolution",),
    )
    result = document_json(
        [page_json(page), page_json(PageFailure(1, "damaged", "It is damaged."))],
        document_id="x",
        source=DocumentSource("a.png", "0" * 64, "image/png", 1),
        model_version="x@1",
        options=OcrOptions().model_dump(mode="json"),
    )

    written = set(fields_of_result(result))
    assert written <= set(MEANINGS)
    assert written >= REQUIRED
