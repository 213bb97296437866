"""Every file of the corpus, read, in every format; its searchable PDF read again."""

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.corpus import corpus_files
from tests.support.export_checks import (
    alto_words,
    check_alto,
    check_hocr,
    csv_rows,
    hocr_words,
)
from tests.support.models import require_corpus
from tests.support.results import split_result
from tests.support.searchable import lost_words, word_count
from workers.ocr.document_result import DocumentSource, document_json
from workers.ocr.engine import OcrEngine
from workers.ocr.errors import DocumentError
from workers.ocr.exports.text_formats import TEXT_WRITERS
from workers.ocr.formats import HEAD_BYTES, MediaType, sniff
from workers.ocr.options import OcrOptions
from workers.ocr.page_reader import PageReader
from workers.ocr.result import page_json
from workers.page_renderer import PageRenderer, RenderLimits
from workers.searchable_document import write_searchable_pdf

PAGES_TRIED = 2
# Files whose own text an extractor puts in another order than we do: mixed Arabic and Latin words.
OWN_TEXT = frozenset({"right_to_left_01.pdf"})
MAX_LOST = 0.01


def documents() -> list[Path]:
    found = [*corpus_files("accuracy"), *corpus_files("robust")]
    return [path for path in found if sniff(path.read_bytes()[:HEAD_BYTES]) is not None]


def letters(texts: Iterable[str]) -> str:
    """Return what is to be seen of texts: spaces differ, and XML cannot hold controls."""
    return "".join(each for each in "".join(texts) if each.isprintable() and not each.isspace())


@pytest.fixture(scope="module")
def renderer() -> Iterator[PageRenderer]:
    with PageRenderer(RenderLimits()) as made:
        yield made


def read(path: Path, renderer: PageRenderer, engine: OcrEngine) -> dict[str, Any]:
    """Read the first pages of a file, by the routes that they would take."""
    opened = renderer.open(path)
    wanted = range(min(opened.page_count, PAGES_TRIED))
    pages = PageReader(engine).read_pages(renderer.pages(wanted, dpi=200, mode="auto"))
    content = path.read_bytes()
    return document_json(
        map(page_json, pages),
        document_id=path.name,
        source=DocumentSource(
            path.name, hashlib.sha256(content).hexdigest(), opened.media_type, len(content)
        ),
        model_version="test@0",
        options=OcrOptions().model_dump(mode="json"),
    )


@pytest.mark.timeout(900)  # over a hundred files are read
def test_every_file_validates_and_gives_its_words_back(
    renderer: PageRenderer, engine: OcrEngine, tmp_path: Path
) -> None:
    require_corpus()
    words = lost = tried = 0
    for path in documents():
        try:
            result = read(path, renderer, engine)
        except DocumentError:
            continue  # broken on purpose: it has no result
        tried += 1
        header, pages = split_result(result)
        written = {name: "".join(make(header, pages)) for name, make in TEXT_WRITERS.items()}
        text = letters(line["text"] for page in pages for line in page.get("lines", ()))
        assert letters(alto_words(check_alto(written["alto"]))) == text, path
        assert letters(hocr_words(check_hocr(written["hocr"]))) == text, path
        assert {int(row["page_number"]) for row in csv_rows(written["csv"])} == {
            page["page_number"] for page in pages
        }, path
        made = tmp_path / "made.pdf"
        wanted = range(1, len(pages) + 1)
        with made.open("w+b") as file:
            write_searchable_pdf(
                path, file, header, partial(iter, pages), renderer=renderer, wanted=wanted
            )
        is_pdf = result["source"]["media_type"] == MediaType.PDF
        # The page image of an image is upright already.
        shown = pages if is_pdf else [{**page, "rotation_deg": 0} for page in pages]
        missing = lost_words(made, shown)
        assert path.name in OWN_TEXT or len(missing) <= max(MAX_LOST * word_count(pages), 2), path
        words += word_count(pages)
        lost += len(missing)
    assert tried > 80
    assert lost <= MAX_LOST * words
