"""Open a document of any format that is read, and take its pages one at a time.

Parsing hostile bytes is work for the render child (``workers.render_child``), which has no
secrets and is under resource limits; in other processes open only files that you made.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from workers.ocr.errors import (
    EmptyDocumentError,
    FileTooLargeError,
    TooManyPagesError,
    UnsupportedMediaTypeError,
)
from workers.ocr.formats import HEAD_BYTES, MediaType, sniff
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.pdf import PdfSource
from workers.ocr.raster import RasterSource
from workers.ocr.rendered_page import RenderedPage


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """What a document may be at most.

    Attributes:
        max_file_bytes: size of the file.
        max_pages: pages of a PDF, frames of a TIFF.
        max_pixels: width x height of one page image.
    """

    max_file_bytes: int = 2 * 1024**3
    max_pages: int = 10_000
    max_pixels: int = 60_000_000


class PageSource(Protocol):
    """An open document; a context manager that closes it.

    Attributes:
        media_type: what the content is.
        page_count: pages, at least 1.
    """

    media_type: MediaType
    page_count: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def render(
        self,
        page_index: int,
        *,
        dpi: float,
        max_pixels: int,
        mode: Mode = "ocr",
        text_order: TextOrder = "reading",
    ) -> RenderedPage:
        """Return one upright page and the route to its text.

        The same page gives the same pixels and text, whichever pages were rendered before it.

        Args:
            page_index: 0-based, below ``page_count``.
            dpi: wanted resolution of PDF pages; a page that is one scan may keep its own, see
                ``workers.ocr.pdf_image_page``. Images are read at their own size.
            max_pixels: the page image has at most this many; a lower ``RenderedPage.dpi`` says so.
            mode: ``ocr`` draws every page, ``text`` draws none and takes what the file states,
                ``auto`` looks which of the two serves the page.
            text_order: of the lines that the file states, see ``workers.ocr.layer_order``; images
                state none.

        Raises:
            DamagedPageError: the page cannot be rendered or decoded.
            PageTooLargeError: it has too many pixels even at the lowest resolution tried.
            MemoryError: the process ran into its memory limit; replace it.
        """
        ...


def open_source(path: Path, *, limits: SourceLimits, password: str | None = None) -> PageSource:
    """Open a document, having checked size, format by content, and page count.

    ``limits.max_pixels`` is not looked at here: a page that is too large is that page's failure.

    Raises:
        EmptyDocumentError: no bytes, or a sound file without pages.
        UnsupportedMediaTypeError: the content is none of the formats of ``MediaType``.
        UnreadableDocumentError: damaged beyond repair, or repaired to nothing.
        EncryptedDocumentError: the password is missing or wrong.
        FileTooLargeError: more bytes than ``limits.max_file_bytes``.
        TooManyPagesError: more pages than ``limits.max_pages``.
        MemoryError: the process ran into its memory limit; replace it.
    """
    size_bytes = path.stat().st_size
    if size_bytes > limits.max_file_bytes:
        raise FileTooLargeError(
            f"The file has {size_bytes} bytes; the limit is {limits.max_file_bytes} bytes.",
            limit=limits.max_file_bytes,
            actual=size_bytes,
        )
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    media_type = _media_type_of(head)

    source: PageSource = (
        PdfSource(path, password=password)
        if media_type is MediaType.PDF
        else RasterSource(path, media_type=media_type, max_pages=limits.max_pages)
    )
    try:
        _check_page_count(source.page_count, limits.max_pages)
    except TooManyPagesError:
        source.__exit__()
        raise
    return source


def _media_type_of(head: bytes) -> MediaType:
    if not head:
        raise EmptyDocumentError("The file is empty (0 bytes). Send the file again.")
    media_type = sniff(head)
    if media_type is None:
        raise UnsupportedMediaTypeError(
            "The content is not a PDF, PNG, JPEG, TIFF, WebP or BMP, whatever the file's name "
            "says. Convert it to one of these."
        )
    return media_type


def _check_page_count(page_count: int, max_pages: int) -> None:
    if page_count > max_pages:
        raise TooManyPagesError(
            f"The document has {page_count} pages or more; the limit is {max_pages} pages. "
            "Split it into smaller documents.",
            limit=max_pages,
            actual=page_count,
        )
