"""Searchable PDFs: what they are made of, and which words come back at their places."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymupdf

from tests.support.results import page_with_lines, placed_line
from workers.ocr.pdf import structured_text

SIZE_PT = (360, 252)
DPI = 200
SCALE = DPI / 72
# How far a letter's middle may lie outside its word's box, as a share of the word's smaller side.
_TOLERANCE = 0.25


def words_page(width_pt: float, height_pt: float, **facts: Any) -> dict[str, Any]:
    """Make a page object with words in many directions and scripts."""
    lines = [
        placed_line(
            "Hello wörld 漢字𠀀", [[30, 40], [230, 40], [230, 60], [30, 60]],
            [("Hello", [30, 40, 80, 60]), ("wörld", [90, 40, 140, 60]), ("漢", [150, 40, 170, 60]),
             ("字", [170, 40, 190, 60]), ("𠀀", [190, 40, 210, 60])],
        ),
        placed_line(
            "טוב בוקר", [[10, 200], [90, 200], [90, 220], [10, 220]],
            [("טוב", [50, 200, 90, 220]), ("בוקר", [10, 200, 45, 220])],
        ),
        placed_line(
            "縦書", [[100, 250], [100, 290], [80, 290], [80, 250]],
            [("縦", [80, 250, 100, 270]), ("書", [80, 270, 100, 290])],
        ),
        placed_line(
            "upwards", [[300, 300], [300, 180], [325, 180], [325, 300]],
            [("upwards", [300, 180, 325, 300])],
        ),
        placed_line(
            "upside down", [[500, 130], [400, 130], [400, 110], [500, 110]],
            [("upside", [450, 110, 500, 130]), ("down", [400, 110, 440, 130])],
        ),
        placed_line(
            "in a slant", [[400, 200], [573.2, 300], [563.2, 317.3], [390, 217.3]],
            [("in", [390, 200, 430.6, 231.8]), ("a", [440, 225, 470, 250]),
             ("slant", [490, 251.9, 573.2, 317.3])],
        ),
    ]  # fmt: skip
    width, height = round(width_pt * SCALE), round(height_pt * SCALE)
    return {**page_with_lines(*lines, width=width, height=height), "dpi": DPI, **facts}


def blank_pdf(folder: Path, *, page_count: int = 1, **options: Any) -> Path:
    document = pymupdf.open()
    for number in range(page_count):
        page = document.new_page(width=SIZE_PT[0], height=SIZE_PT[1])
        page.draw_rect((20 + number, 20, 60, 60), fill=(0.5, 0.5, 0.5))
    path = folder / "source.pdf"
    document.save(path, **options)
    return path


def info_of(path: Path, key: str) -> str:
    with pymupdf.open(path) as document:
        info = int(document.xref_get_key(-1, "Info")[1].split()[0])
        return str(document.xref_get_key(info, key)[1])


def lost_words(path: Path, pages: Sequence[dict[str, Any]], *, first: int = 1) -> list[str]:
    """Return the words of page objects that the PDF does not have at their places.

    Args:
        path: the PDF.
        pages: page objects.
        first: page number of the PDF's first page in the document.
    """
    lost = []
    with pymupdf.open(path) as document:
        for page in pages:
            if page["state"] == "ok":
                letters = _letters(document[page["page_number"] - first], page)
                lost += [
                    word["text"]
                    for line in page["lines"]
                    for word in line["words"]
                    if word["text"] not in _within(letters, word["box"])
                ]
    return lost


def word_count(pages: Sequence[dict[str, Any]]) -> int:
    return sum(len(line["words"]) for page in pages for line in page.get("lines", ()))


def _letters(shown: pymupdf.Page, page: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Return letters and their middles in page pixels, in the order of extraction."""
    turn = (page["rotation_deg"] - shown.rotation) % 360
    width, height = shown.rect.width, shown.rect.height
    found = []
    # Unlike Page.get_text this leaves /Rotate, CropBox and UserUnit applied.
    for block in structured_text(shown).extractRAWDICT()["blocks"]:
        for line in block.get("lines", ()):
            for span in line["spans"]:
                for letter in span["chars"]:
                    box = pymupdf.Rect(letter["bbox"])
                    x = (box.x0 + box.x1) / 2 / width
                    y = (box.y0 + box.y1) / 2 / height
                    for _ in range(turn // 90):
                        x, y = 1 - y, x
                    found.append((letter["c"], x * page["width_px"], y * page["height_px"]))
    return found


def _within(letters: Sequence[tuple[str, float, float]], box: Sequence[float]) -> str:
    x_min, y_min, x_max, y_max = box
    slack = max(_TOLERANCE * min(x_max - x_min, y_max - y_min), 1.0)
    return "".join(
        letter
        for letter, x, y in letters
        if x_min - slack <= x <= x_max + slack and y_min - slack <= y <= y_max + slack
    )
