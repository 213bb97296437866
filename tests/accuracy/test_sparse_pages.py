"""Pages with a line or two and nothing else: the title, the number, the name on a divider."""

import cv2
import numpy as np
import pymupdf
import pytest
from numpy.typing import NDArray

from tests.support.corpus import require_corpus
from workers.ocr.engine import OcrEngine
from workers.ocr.page_image import PageImage

# Text, font, size in points, place in points.
LINES = [
    ("Index", "tiro", 12, (80, 120)),
    ("Blank", "helv", 9, (151, 527)),
    ("1911", "cour", 9, (228, 714)),
    ("Harbour", "cour", 12, (240, 552)),
    ("Appendix B", "tiro", 18, (306, 396)),
    ("confidential", "helv", 7, (383, 74)),
    ("Page 4", "cour", 9, (86, 698)),
    ("xiv", "tiro", 12, (500, 750)),
]


def drawn(text: str, font: str, size: float, at: tuple[float, float]) -> NDArray[np.uint8]:
    """Return a letter page at 200 dpi with one line on it."""
    with pymupdf.open() as document:
        page = document.new_page(width=612, height=792)
        page.insert_text(at, text, fontname=font, fontsize=size)
        drawing = page.get_pixmap(dpi=200, alpha=False)
    pixels = np.frombuffer(drawing.samples, dtype=np.uint8)
    return pixels.reshape(drawing.height, drawing.width, 3).copy()


def scanned(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a page as a scanner sees it: gray, blurred, noisy, with dust all over."""
    random = np.random.default_rng(11)
    gray = cv2.GaussianBlur(pixels, (0, 0), 0.8) * 0.85 + 15
    gray += random.normal(0, 6, pixels.shape[:2])[..., np.newaxis]
    for row, column in random.integers((pixels.shape[0] - 2, pixels.shape[1] - 2), size=(12, 2)):
        gray[row : row + 2, column : column + 2] = 90
    return np.clip(gray, 0, 255).astype(np.uint8)


def read(engine: OcrEngine, pixels: NDArray[np.uint8]) -> list[str]:
    (outcome,) = engine.read_pages([PageImage(0, pixels, dpi=200.0)])
    return [line.text for line in outcome.lines]


@pytest.mark.parametrize(("text", "font", "size", "at"), LINES)
def test_a_lone_line_is_read(
    engine: OcrEngine, text: str, font: str, size: float, at: tuple[float, float]
) -> None:
    assert read(engine, drawn(text, font, size, at)) == [text]


@pytest.mark.parametrize(("text", "font", "size", "at"), LINES)
def test_a_lone_line_of_a_scan_is_read(
    engine: OcrEngine, text: str, font: str, size: float, at: tuple[float, float]
) -> None:
    assert read(engine, scanned(drawn(text, font, size, at))) == [text]


def test_a_line_far_from_another_is_read(engine: OcrEngine) -> None:
    """Between them the page cannot be left out."""
    page = np.minimum(
        drawn("Harbour ledger", "tiro", 18, (200, 100)), drawn("17", "tiro", 9, (300, 760))
    )

    assert read(engine, page) == ["Harbour ledger", "17"]


def test_the_word_of_a_scan_of_the_corpus_is_read(engine: OcrEngine) -> None:
    with pymupdf.open(require_corpus("scan-bad.pdf")) as document:
        drawing = document[0].get_pixmap(dpi=200, alpha=False)
    pixels = np.frombuffer(drawing.samples, dtype=np.uint8)

    text = read(engine, pixels.reshape(drawing.height, drawing.width, 3).copy())

    assert text == ["pdf.js"]
