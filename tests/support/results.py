"""Stored results: what they have to be like, and builders for the formats made of them."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from tests.support.commands import ROOT
from tests.support.pages import make_page
from workers.ocr.document_result import DocumentSource, document_json
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure
from workers.ocr.result import page_json

SCHEMA: dict[str, Any] = json.loads(
    (ROOT / "docs/schema/pagefleet-1.schema.json").read_text("utf-8")
)
FAILED = page_json(PageFailure(1, "damaged", "The page is <damaged> & cannot be decoded."))


def require_valid(result: dict[str, Any]) -> None:
    """Let the test fail whose result is none of the published schema."""
    Draft202012Validator(SCHEMA).validate(result)


def result_of(*pages: dict[str, Any], filename: str = "scan.pdf") -> dict[str, Any]:
    return document_json(
        pages,
        document_id="0198f3a2-0000-7000-8000-000000000000",
        source=DocumentSource(filename, "0" * 64, "application/pdf", 1234),
        model_version="ppocrv6-small@0123456789",
        options=OcrOptions().model_dump(mode="json"),
    )


def split_result(result: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return header and pages, as the writers take them."""
    header = {key: value for key, value in result.items() if key not in {"full_text", "pages"}}
    return header, result["pages"]


def stored(result: dict[str, Any]) -> bytes:
    return json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()


def page_of(*blocks: list[str], **facts: Any) -> dict[str, Any]:
    return page_json(make_page(*blocks, **facts))


def page_with_lines(
    *lines: dict[str, Any], width: int = 1000, height: int = 1400
) -> dict[str, Any]:
    """Make a page of lines that are given as ``placed_line`` makes them, each a block."""
    page = page_of(*([line["text"]] for line in lines))
    boxes = [[list(corner) for corner in line["polygon"]] for line in lines]
    return {
        **page,
        "width_px": width,
        "height_px": height,
        "lines": [{**line, "id": number} for number, line in enumerate(lines)],
        "blocks": [
            {**block, "polygon": box} for block, box in zip(page["blocks"], boxes, strict=True)
        ],
    }


def placed_line(
    text: str, polygon: list[list[float]], words: list[tuple[str, list[float]]]
) -> dict[str, Any]:
    return {
        "id": 0,
        "text": text,
        "polygon": polygon,
        "confidence": 0.9,
        "detection_score": 0.8,
        "words": [{"text": word, "box": box} for word, box in words],
    }
