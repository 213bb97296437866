"""Real born-digital PDFs from the folder beside the checkout: their text without recognition."""

import csv
import json
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.engines import NumberingEngine
from tests.support.metrics import character_error_rate, error_rate_without_spaces
from tests.support.models import require_corpus
from workers.ocr.modes import TextOrder
from workers.ocr.page_reader import PageReader
from workers.ocr.page_text import page_text
from workers.ocr.result import PageResult, page_json
from workers.page_renderer import PageRenderer, RenderLimits

# Measured on 17 of 18 files: 14 times 0, worst 0.0071, where built brackets have no Unicode.
MAX_CER = 0.01
MAX_MEAN_CER = 0.002
# Its expected text is in the order of the file, which goes through three columns line by line; we
# read column by column. So it is compared with the columns of the expected boxes, page by page.
# Measured 0.03, from two signs in the margin and footers; against the file's order it is 0.76.
OUT_OF_ORDER = "i1040nr_p10-12.pdf"
MAX_CER_BY_COLUMNS = 0.04


def rows() -> list[dict[str, str]]:
    with (require_corpus() / "INDEX.tsv").open(encoding="utf-8", newline="") as index:
        return [
            row
            for row in csv.DictReader(index, delimiter="\t")
            if row["area"] == "accuracy" and row["kind"] == "born-digital"
        ]


@pytest.fixture(scope="module")
def renderer() -> Iterator[PageRenderer]:
    with PageRenderer(RenderLimits()) as made:
        yield made


@pytest.fixture(scope="module")
def results(renderer: PageRenderer) -> dict[Path, list[PageResult]]:
    return read_all(renderer, "reading")


def read_all(renderer: PageRenderer, text_order: TextOrder) -> dict[Path, list[PageResult]]:
    read: dict[Path, list[PageResult]] = {}
    for row in rows():
        path = require_corpus() / row["path"]
        indexes = range(renderer.open(path).page_count)
        pages = PageReader(NumberingEngine()).read_pages(
            renderer.pages(indexes, dpi=200, mode="auto", text_order=text_order)
        )
        read[path] = [page for page in pages if isinstance(page, PageResult)]
    return read


def error_rate(expected: str, actual: str, language: str) -> float:
    if language in {"ja", "zh"}:
        return error_rate_without_spaces(expected, actual)
    return character_error_rate(expected, actual)


def text_of(pages: list[PageResult]) -> str:
    return "\f".join(page_text(page_json(page)) for page in pages)


@pytest.fixture(scope="module")
def error_rates(results: dict[Path, list[PageResult]]) -> dict[str, float]:
    rates = rates_of(results)
    return {name: rate for name, rate in rates.items() if name != OUT_OF_ORDER}


def rates_of(results: dict[Path, list[PageResult]]) -> dict[str, float]:
    languages = {Path(row["path"]).name: row["language"] for row in rows()}
    return {
        path.name: error_rate(expected_text(path), text_of(pages), languages[path.name])
        for path, pages in results.items()
    }


def expected_text(path: Path) -> str:
    return path.with_suffix(".gt.txt").read_text(encoding="utf-8")


def test_no_page_is_recognized(results: dict[Path, list[PageResult]]) -> None:
    routes = {path.name: {page.route for page in pages} for path, pages in results.items()}

    assert all(each == {"text"} for each in routes.values()), routes


def test_every_text_comes_in_its_order(error_rates: dict[str, float]) -> None:
    assert max(error_rates.values()) <= MAX_CER, error_rates
    assert np.mean(list(error_rates.values())) <= MAX_MEAN_CER, error_rates


def test_every_text_comes_in_the_order_of_its_file_where_that_is_asked_for(
    renderer: PageRenderer,
) -> None:
    rates = rates_of(read_all(renderer, "file"))

    assert OUT_OF_ORDER in rates
    assert len(rates) == len(rows())
    assert max(rates.values()) <= MAX_CER, rates
    assert np.mean(list(rates.values())) <= MAX_MEAN_CER, rates


def test_columns_are_read_one_after_the_other_though_the_file_does_not(
    results: dict[Path, list[PageResult]],
) -> None:
    path = next(path for path in results if path.name == OUT_OF_ORDER)
    boxes = json.loads(path.with_suffix(".gt.boxes.json").read_text(encoding="utf-8"))

    expected = "\f".join(by_columns(page) for page in boxes["pages"])

    assert character_error_rate(expected, text_of(results[path])) <= MAX_CER_BY_COLUMNS


def by_columns(page: dict[str, object]) -> str:
    """Put the lines of a page of three columns into their order."""
    width = float(page["width"])  # type: ignore[arg-type] - of JSON
    lines = sorted(
        page["lines"],  # type: ignore[call-overload] - the same
        key=lambda line: (
            line["bbox"][1] > 740,
            int(3 * (line["bbox"][0] + 10) / width),
            line["bbox"][3],
        ),
    )
    return "\n".join(line["text"] for line in lines)


def test_no_character_is_lost_or_added(results: dict[Path, list[PageResult]]) -> None:
    changed = {
        path.name: (expected - read, read - expected)
        for path, pages in results.items()
        if (expected := characters(expected_text(path))) != (read := characters(text_of(pages)))
    }

    assert all(lost.total() + added.total() <= 30 for lost, added in changed.values()), changed


def characters(text: str) -> Counter[str]:
    return Counter("".join(unicodedata.normalize("NFKC", text).split()))
