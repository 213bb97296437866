"""Make the project's own sample documents, with the text that must be read from them.

All of it is made here: texts are the project's, fonts are those built into MuPDF. Apart from the
encrypted file, whose cipher takes random bytes, the same release makes the same bytes.
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pymupdf
import typer
from PIL import Image

from cli.sample_texts import (
    CHINESE,
    LABEL,
    LETTERS,
    REGISTER,
    SCANS,
    TYPED_NOTE,
    PageText,
    make_word,
)

SAMPLE_PASSWORD: Final = "kestrel"  # noqa: S105 - opens a sample, guards nothing
DENSE_COLUMNS: Final = 46
DENSE_ROWS: Final = 48

_A4_PT: Final = (595, 842)
_A3_LANDSCAPE_PT: Final = (1191, 842)
_LABEL_PT: Final = (300, 140)
_MARGIN_PT: Final = 56
_LATIN_FONT: Final = "helv"
_CHINESE_FONT: Final = "china-s"
_SCAN_DPI: Final = 200
_DENSE_DPI: Final = 300
# Gaps of more than three times the type's height: PP-OCRv6 small finds each word by itself at
# scales from 0.4 to 1 (measured); 6 pt with five letters it joins to 331 regions at scale 1.
_DENSE_SIZE_PT: Final = 5.0
_SKEWS_DEG: Final = (0.4, -0.7, 0.2, 1.0)
_NOISE_SEED: Final = 1911


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample document and what must become of it.

    Attributes:
        path: the file.
        page_lines: for each page its text lines from top to bottom; of the dense page the words,
            row by row. Empty where the document is refused.
        error_code: of the error table, where the document is refused.
        password: what opens the file, where it is encrypted.
    """

    path: Path
    page_lines: tuple[tuple[str, ...], ...] = ()
    error_code: str | None = None
    password: str | None = None

    @property
    def page_count(self) -> int:
        return len(self.page_lines)


def samples(
    folder: Annotated[Path, typer.Argument(help="Where the files go; made where missing.")],
) -> None:
    """Write the sample documents into FOLDER."""
    for sample in write_samples(folder):
        outcome = sample.error_code or f"{sample.page_count} page(s)"
        typer.echo(f"{sample.path}  {outcome}")


def write_samples(folder: Path) -> list[Sample]:
    """Write every sample into ``folder``, over older ones; about 3 s."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = _pdf_of(LETTERS)
    scan_pages = [_rendered(page) for page in SCANS]
    register_pages = [_rendered(page) for page in REGISTER]
    chinese_pages = [_rendered(page, font=_CHINESE_FONT) for page in CHINESE]
    label = [_rendered(page, size_pt=_LABEL_PT) for page in LABEL]

    contents: list[tuple[str, bytes, dict[str, Any]]] = [
        ("letters.pdf", _saved(letters), {"page_lines": _lines_of(LETTERS)}),
        ("scanned-letters.pdf", _scanned_pdf(scan_pages), {"page_lines": _lines_of(SCANS)}),
        ("chinese-inventory.pdf", _scanned_pdf(chinese_pages), {"page_lines": _lines_of(CHINESE)}),
        ("register.tiff", _fax_tiff(register_pages), {"page_lines": _lines_of(REGISTER)}),
        ("dense-index.png", _dense_png(), {"page_lines": (_dense_words(),)}),
        ("label.png", _png(label[0], _SCAN_DPI), {"page_lines": _lines_of(LABEL)}),
        ("damaged.pdf", _truncated(_saved(letters)), {"error_code": "damaged"}),
        (
            "encrypted.pdf",
            _encrypted(letters),
            {"error_code": "encrypted", "password": SAMPLE_PASSWORD},
        ),
        ("empty.pdf", b"", {"error_code": "empty"}),
        ("note.pdf", TYPED_NOTE.encode(), {"error_code": "unsupported_media_type"}),
    ]
    written = []
    for name, content, expected in contents:
        (folder / name).write_bytes(content)
        written.append(Sample(folder / name, **expected))
    return written


def write_long_document(path: Path, page_count: int) -> None:
    """Write a PDF of so many scanned pages, the sample's scans in turn."""
    scans = pymupdf.open(stream=_scanned_pdf([_rendered(page) for page in SCANS]))
    document = pymupdf.open()
    for first in range(0, page_count, scans.page_count):
        # Copied each time, so that the file grows with its pages as a real one does.
        last = min(scans.page_count, page_count - first) - 1
        document.insert_pdf(scans, to_page=last)
    document.save(path)


def _lines_of(pages: tuple[PageText, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(text for _, text in page if text) for page in pages)


def _pdf_of(
    pages: tuple[PageText, ...], *, font: str = _LATIN_FONT, size_pt: tuple[int, int] = _A4_PT
) -> pymupdf.Document:
    document = pymupdf.open()
    for lines in pages:
        page = document.new_page(width=size_pt[0], height=size_pt[1])
        margin_pt = min(_MARGIN_PT, size_pt[1] // 6)
        y_pt = float(margin_pt)
        for type_size_pt, text in lines:
            y_pt += 1.5 * type_size_pt
            page.insert_text((margin_pt, y_pt), text, fontname=font, fontsize=type_size_pt)
    return document


def _saved(document: pymupdf.Document, **options: Any) -> bytes:  # noqa: ANN401 - PyMuPDF's own
    # Without a new id, which is random, the bytes are the same every time.
    content: bytes = document.tobytes(deflate=True, garbage=3, no_new_id=True, **options)
    return content


def _rendered(
    lines: PageText, *, font: str = _LATIN_FONT, size_pt: tuple[int, int] = _A4_PT
) -> Image.Image:
    """Return the page as grey pixels at ``_SCAN_DPI``."""
    page = _pdf_of((lines,), font=font, size_pt=size_pt)[0]
    return _grey_image(page.get_pixmap(dpi=_SCAN_DPI, colorspace=pymupdf.csGRAY))


def _grey_image(pixmap: pymupdf.Pixmap) -> Image.Image:
    return Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)


def _scanned_pdf(pages: list[Image.Image]) -> bytes:
    """Return a PDF whose pages are one JPEG each: grey, noisy and a little askew."""
    noise = np.random.default_rng(_NOISE_SEED)
    document = pymupdf.open()
    for page, skew_deg in zip(pages, _SKEWS_DEG, strict=False):
        turned = page.rotate(skew_deg, Image.Resampling.BICUBIC, fillcolor=255)
        paper = np.asarray(turned, np.float32) * (225 / 255) + 12
        grains = noise.normal(0, 7, paper.shape)
        scan = Image.fromarray(np.clip(paper + grains, 0, 255).astype(np.uint8))
        jpeg = io.BytesIO()
        scan.save(jpeg, "JPEG", quality=70, dpi=(_SCAN_DPI, _SCAN_DPI))
        sheet = document.new_page(
            width=page.width * 72 / _SCAN_DPI, height=page.height * 72 / _SCAN_DPI
        )
        sheet.insert_image(sheet.rect, stream=jpeg.getvalue())
    return _saved(document)


def _fax_tiff(pages: list[Image.Image]) -> bytes:
    """Return black and white frames, compressed as a fax is (CCITT group 4)."""
    frames = [page.point(lambda level: 255 if level > 127 else 0).convert("1") for page in pages]  # noqa: PLR2004 - middle of 0 to 255
    tiff = io.BytesIO()
    frames[0].save(
        tiff,
        "TIFF",
        save_all=True,
        append_images=frames[1:],
        compression="group4",
        dpi=(_SCAN_DPI, _SCAN_DPI),
    )
    return tiff.getvalue()


def _dense_words() -> tuple[str, ...]:
    return tuple(make_word(index) for index in range(DENSE_ROWS * DENSE_COLUMNS))


def _dense_png() -> bytes:
    """Return a page with more text regions than are recognized (2,000), in tiny type."""
    width_pt, height_pt = _A3_LANDSCAPE_PT
    page = pymupdf.open().new_page(width=width_pt, height=height_pt)
    cell_width_pt, cell_height_pt = width_pt / DENSE_COLUMNS, height_pt / DENSE_ROWS
    writer = pymupdf.TextWriter(page.rect)
    font = pymupdf.Font(_LATIN_FONT)
    for index, word in enumerate(_dense_words()):
        row, column = divmod(index, DENSE_COLUMNS)
        corner = ((column + 0.2) * cell_width_pt, (row + 0.65) * cell_height_pt)
        writer.append(corner, word, font=font, fontsize=_DENSE_SIZE_PT)
    writer.write_text(page)
    pixmap = page.get_pixmap(dpi=_DENSE_DPI, colorspace=pymupdf.csGRAY)
    return _png(_grey_image(pixmap), _DENSE_DPI)


def _png(page: Image.Image, dpi: int) -> bytes:
    png = io.BytesIO()
    page.save(png, "PNG", dpi=(dpi, dpi))
    return png.getvalue()


def _truncated(pdf: bytes) -> bytes:
    """Cut a PDF before its first page object, where no repair finds a page."""
    return pdf[: pdf.index(b"/Type/Page/")]


def _encrypted(document: pymupdf.Document) -> bytes:
    return _saved(
        document,
        encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256,
        user_pw=SAMPLE_PASSWORD,
        owner_pw=SAMPLE_PASSWORD,
    )
