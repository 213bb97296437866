"""The door to PyMuPDF: PDF pages as upright page images.

PyMuPDF 1.28.2 or later below 2: earlier ones have CVE-2026-3308, and 2.x requires onnxruntime.
"""

import math
import time
from pathlib import Path
from typing import Final, Self

import numpy as np
import pymupdf
from pymupdf import mupdf

from workers.ocr.errors import (
    DamagedPageError,
    EmptyDocumentError,
    EncryptedDocumentError,
    PageTooLargeError,
    UnreadableDocumentError,
)
from workers.ocr.formats import MediaType
from workers.ocr.page_image import PageImage

MIN_DPI: Final = 36
"""Below it 10 pt type is 5 px high, which no recognizer reads."""

_PT_PER_INCH: Final = 72
# What MuPDF's door lets out: its own errors, PyMuPDF's RuntimeError family (FileDataError), and
# the ValueError of its argument checks, which hostile files reach too.
_MUPDF_ERRORS: Final = (mupdf.FzErrorBase, RuntimeError, ValueError)
_DRAWS_TEXT: Final = frozenset({"fill-text", "stroke-text"})


class PdfSource:
    """An open PDF; see ``workers.ocr.sources.PageSource``.

    /Rotate, CropBox and UserUnit are applied; annotations and filled form fields are drawn, since
    a reader sees them. A PDF with only an owner password opens without one.
    """

    media_type = MediaType.PDF

    def __init__(self, path: Path, *, password: str | None = None) -> None:
        """Open the file; MuPDF repairs what it can.

        Raises:
            UnreadableDocumentError: no PDF, or damaged so that no page is left.
            EncryptedDocumentError: the password is missing or wrong.
            EmptyDocumentError: a sound PDF without pages.
        """
        mupdf.fz_set_error_callback(_ignore)
        mupdf.fz_set_warning_callback(_ignore)
        try:
            # By descriptor: MuPDF takes names in UTF-8 only, and a file's name may be any bytes.
            with path.open("rb") as stream:
                self._document = pymupdf.open(f"/dev/fd/{stream.fileno()}", filetype="pdf")
        except _MUPDF_ERRORS as error:
            raise UnreadableDocumentError(
                "The PDF is damaged and cannot be repaired. Export or scan it again."
            ) from error
        try:
            self._unlock(password)
            self.page_count = self._count_pages()
        except BaseException:
            self._document.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._document.close()

    def _unlock(self, password: str | None) -> None:
        if not self._document.needs_pass:
            return
        if password is None:
            raise EncryptedDocumentError(
                "The PDF is encrypted. Send it with its password, or without encryption."
            )
        if not self._document.authenticate(password):
            raise EncryptedDocumentError("The PDF is encrypted and the password is wrong.")

    def _count_pages(self) -> int:
        try:
            page_count = int(self._document.page_count)
        except _MUPDF_ERRORS as error:
            raise UnreadableDocumentError("The PDF's list of pages is damaged.") from error
        if page_count > 0:
            return page_count
        if self._document.is_repaired:
            raise UnreadableDocumentError(
                "The PDF is damaged: no page could be repaired. Export or scan it again."
            )
        raise EmptyDocumentError("The PDF has no pages.")

    def _load(self, page_index: int) -> pymupdf.Page:
        page: pymupdf.Page = self._document.load_page(page_index)
        # MuPDF makes an empty page of a missing object.
        if self._document.xref_object(page.xref) == "null":
            raise DamagedPageError("The page is missing from the file.")
        return page

    def render(self, page_index: int, *, dpi: float, max_pixels: int) -> PageImage:
        """Return one upright page; the protocol says more.

        An image that MuPDF cannot decode is left out by it. Where the page has visible text, the
        rest is worth reading; else it has lost its content, and fails, so that nobody takes it for
        a blank page.

        Raises:
            DamagedPageError: MuPDF cannot load the page, or cannot decode what it consists of.
            PageTooLargeError: over ``max_pixels`` even at ``MIN_DPI``.
            MemoryError: MuPDF could not allocate.
        """
        started = time.perf_counter()
        complaints: list[str] = []
        try:
            page = self._load(page_index)
            mupdf.fz_set_error_callback(complaints.append)
            page_dpi = fit_dpi(page.rect.width, page.rect.height, dpi, max_pixels)
            zoom = page_dpi / _PT_PER_INCH
            pixmap = page.get_pixmap(
                matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csRGB, alpha=False
            )
            if complaints and not _draws_text(page):
                raise DamagedPageError("What this page consists of is damaged and cannot be drawn.")
            rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.h, pixmap.stride)
            # A copy, since MuPDF frees the samples together with the pixmap.
            pixels = rows[:, : pixmap.w * 3].reshape(pixmap.h, pixmap.w, 3).copy()
            rotation_deg = int(page.rotation)
        except mupdf.FzErrorSystem as error:
            # Once a file is open, what fails in the system is an allocation.
            raise MemoryError(f"MuPDF could not allocate for page index {page_index}") from error
        except _MUPDF_ERRORS as error:
            raise DamagedPageError("The page is damaged and cannot be rendered.") from error
        finally:
            mupdf.fz_set_error_callback(_ignore)
            # The store keeps decoded images and fonts. Emptied, memory does not grow with the pages
            # and a broken image complains on every page that shows it, not on the first alone.
            pymupdf.TOOLS.store_shrink(100)
        return PageImage(
            page_index=page_index,
            pixels=pixels,
            dpi=page_dpi,
            rotation_deg=rotation_deg,
            render_s=time.perf_counter() - started,
        )


def fit_dpi(width_pt: float, height_pt: float, wanted_dpi: float, max_pixels: int) -> float:
    """Return the resolution at which a page of this size keeps to the pixel cap.

    Args:
        width_pt: width of the upright page, 1/72 inch, above 0.
        height_pt: height of the same.
        wanted_dpi: is returned where the cap allows it; a lowered one is a whole number.
        max_pixels: cap on width x height in pixels, counted with edges rounded up.

    Raises:
        PageTooLargeError: not even ``MIN_DPI`` (or a lower wanted one) keeps to the cap.
    """
    lowest = min(wanted_dpi, MIN_DPI)
    allowed = _PT_PER_INCH * math.sqrt(max_pixels / (width_pt * height_pt))
    dpi = wanted_dpi if wanted_dpi <= allowed else float(math.floor(allowed))
    while dpi >= lowest and _pixel_count(width_pt, height_pt, dpi) > max_pixels:
        dpi = float(math.ceil(dpi) - 1)
    if dpi < lowest:
        raise PageTooLargeError(
            f"The page measures {width_pt:.0f} x {height_pt:.0f} pt: even at {lowest:g} dpi it has "
            f"more than {max_pixels} pixels. Split the page, or raise the pixel limit."
        )
    return dpi


def _pixel_count(width_pt: float, height_pt: float, dpi: float) -> int:
    zoom = dpi / _PT_PER_INCH
    return (math.ceil(width_pt * zoom) + 1) * (math.ceil(height_pt * zoom) + 1)


def _draws_text(page: pymupdf.Page) -> bool:
    """Whether visible text stands on the page; a hidden layer behind a scan does not count."""
    return any(kind in _DRAWS_TEXT for kind, *_ in page.get_bboxlog())


def _ignore(_message: str) -> None:
    """Keep MuPDF's messages off standard error: what it could mend is no news."""
