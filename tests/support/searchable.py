"""Reading a searchable PDF again: which words of a result come back at their places."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymupdf

from workers.ocr.pdf import structured_text

# How far a letter's middle may lie outside its word's box, as a share of the word's smaller side.
_TOLERANCE = 0.25


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
