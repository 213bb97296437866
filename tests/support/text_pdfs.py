"""PDFs of one page with a text layer, sound or not."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pymupdf
from PIL import Image

from tests.support.pdf_files import assemble_pdf, stream

PROSE = (
    "The keeper of the lamp wrote down every ship that passed,",
    "its flag, its heading and the hour, in a careful round hand.",
    "When the fog came in he wrote the word fog and nothing else,",
    "and on such days the page stayed nearly white.",
    "Years later somebody counted the ships and found that none",
    "had ever come back the other way.",
)


def prose_page(
    lines: Sequence[str] = PROSE, *, size_pt: float = 12, **options: object
) -> tuple[pymupdf.Document, pymupdf.Page]:
    """Return a page of A4 on which these lines stand."""
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    write_lines(page, lines, size_pt=size_pt, **options)
    return document, page


def write_lines(
    page: pymupdf.Page,
    lines: Sequence[str],
    *,
    x_pt: float = 72,
    top_pt: float = 100,
    size_pt: float = 12,
    **options: object,
) -> None:
    for row, line in enumerate(lines):
        page.insert_text((x_pt, top_pt + 1.4 * size_pt * row), line, fontsize=size_pt, **options)


def columns_by_rows(page: pymupdf.Page, *, row_count: int = 12) -> list[str]:
    """Write two columns line by line across both; return the lines in that order of the file."""
    lines = []
    for row in range(row_count):
        for name, x_pt in (("left", 72), ("right", 330)):
            lines.append(f"the {name} column has its line {row} here")
            write_lines(page, lines[-1:], x_pt=x_pt, top_pt=100 + 17 * row)
    return lines


def encrypted(document: pymupdf.Document, password: str, **options: object) -> bytes:
    """Return the file of a document that opens with a password."""
    content: bytes = document.tobytes(
        encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=password, owner_pw="own", **options
    )
    return content


def save(document: pymupdf.Document, folder: Path) -> Path:
    path = folder / "document.pdf"
    document.save(path)
    return path


def picture_of(lines: Sequence[str], *, width_pt: float = 400, height_pt: float = 200) -> bytes:
    """Return a PNG on which these lines are printed, white paper, 200 dpi."""
    document = pymupdf.open()
    page = document.new_page(width=width_pt, height=height_pt)
    write_lines(page, lines, x_pt=20, top_pt=40)
    content: bytes = page.get_pixmap(dpi=200).tobytes("png")
    return content


def flat_picture(level: int) -> bytes:
    """Return a PNG of one gray."""
    out = io.BytesIO()
    Image.fromarray(np.full((60, 60, 3), level, np.uint8)).save(out, "PNG")
    return out.getvalue()


def font_pdf(font: bytes, content: bytes, *more: bytes) -> bytes:
    """Return a PDF that shows a content stream with this font, /F; ``more`` from object 6."""
    return assemble_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Resources<</Font<</F 4 0 R>>>>"
            b"/Contents 5 0 R>>"
        ),
        font,
        stream(b"", content),
        *more,
    ])
