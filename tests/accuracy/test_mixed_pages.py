"""Pages made here that state some of their text and show the rest in pictures."""

from pathlib import Path

import pymupdf

from tests.support.metrics import character_error_rate
from tests.support.text_pdfs import PROSE, picture_of, prose_page, save, write_lines
from workers.ocr.engine import OcrEngine
from workers.ocr.page_reader import PageReader
from workers.ocr.page_text import page_text
from workers.ocr.pdf import PdfSource
from workers.ocr.result import PageResult, page_json

MAX_CER = 0.01
PRINTED = ("the picture shows three lines", "that no layer states at all", "and a number 17.50")


def read(engine: OcrEngine, path: Path) -> PageResult:
    with PdfSource(path) as source:
        page = source.render(0, dpi=200, max_pixels=60_000_000, mode="auto")
    (result,) = PageReader(engine).read_pages([page])
    assert isinstance(result, PageResult)
    return result


def test_a_picture_between_paragraphs_is_read_in_its_place(
    engine: OcrEngine, tmp_path: Path
) -> None:
    document, page = prose_page(PROSE[:3])
    page.insert_image((72, 180, 472, 380), stream=picture_of(PRINTED))
    write_lines(page, PROSE[3:], top_pt=420)

    result = read(engine, save(document, tmp_path))

    expected = "\n".join((*PROSE[:3], *PRINTED, *PROSE[3:]))
    assert result.route == "mixed"
    assert character_error_rate(expected, page_text(page_json(result))) <= MAX_CER


def test_words_typed_over_a_scanned_form_come_once(engine: OcrEngine, tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=400, height=200)
    page.insert_image(page.rect, stream=picture_of(("Name", "Place", "Remarks of the clerk")))
    write_lines(page, ["Ada Fenwick", "Harwich"], x_pt=120, top_pt=40)

    result = read(engine, save(document, tmp_path))

    words = " ".join(line.text for line in result.lines).split()
    assert result.route == "mixed"
    assert sorted(words) == sorted([
        "Name",
        "Ada",
        "Fenwick",
        "Place",
        "Harwich",
        "Remarks",
        "of",
        "the",
        "clerk",
    ])


def test_recognized_lines_lie_where_the_picture_shows_them(
    engine: OcrEngine, tmp_path: Path
) -> None:
    document, page = prose_page(PROSE[:2])
    page.insert_image((72, 300, 472, 500), stream=picture_of(["somewhere"]))

    line = read(engine, save(document, tmp_path)).lines[-1]

    zoom = 200 / 72
    assert line.text == "somewhere"
    assert 72 * zoom < line.quad.box.x_min < 100 * zoom
    assert 320 * zoom < line.quad.box.y_min < line.quad.box.y_max < 350 * zoom
