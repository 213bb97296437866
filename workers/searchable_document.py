"""Make a searchable PDF of a document and its stored result, without any server.

A PDF keeps its pages and gets hidden text, in a child under limits (``workers.searchable_child``).
An image becomes a PDF of its page images, which the render child decodes; that PDF is written here,
page by page, from pixels and numbers alone.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from workers.ocr.errors import (
    DocumentError,
    PageError,
    PageTimeoutError,
    UnreadableDocumentError,
)
from workers.ocr.exports.page_view import Header, Page, is_failed, notices
from workers.ocr.exports.pdf_facts import PageFacts
from workers.ocr.exports.pdf_writer import ImagePdfWriter
from workers.ocr.formats import HEAD_BYTES, MediaType, sniff
from workers.ocr.rendered_page import RenderedPage
from workers.page_renderer import PageRenderer, RenderLimits
from workers.pdf_child import PdfChild
from workers.render_process import ChildDiedError, ChildOvertimeError

ReadPages = Callable[[], Iterator[Page]]
"""Reads the wanted page objects from the beginning, in page order."""

# Hidden text is small beside pages, but a page without images may get more than it had.
_MORE_BYTES: Final = 512 * 2**20
# Enough for two pages that are given up, each tried twice.
_MOST_STARTS: Final = 5


def write_searchable_pdf(
    source: Path,
    output: BinaryIO,
    header: Header,
    read_pages: ReadPages,
    *,
    renderer: PageRenderer,
    password: str | None = None,
    wanted: range | None = None,
) -> None:
    """Write a document as a PDF whose words can be found and selected.

    A page over which MuPDF fails, or its child dies twice, stays without text, and the file says
    so.

    Args:
        source: the file that the result was made from.
        output: an empty file with a descriptor.
        header: of the result.
        read_pages: may be called again, when the child has died of a page.
        renderer: for images; the file is open in it afterwards.
        password: of an encrypted PDF, which stays encrypted.
        wanted: page numbers; None for all.

    Raises:
        DocumentError: the file cannot be opened, or cannot be written with text in it.
        RenderChildError: a child cannot be started.
    """
    with source.open("rb") as stream:
        media_type = sniff(stream.read(HEAD_BYTES))
    if media_type is MediaType.PDF:
        _PdfMaker(source, output, renderer.limits, password).make(header, read_pages, wanted)
    else:
        _write_images(source, output, header, read_pages, renderer)


class _PdfMaker:
    """Puts text into one PDF, in one child after the other."""

    def __init__(
        self, source: Path, output: BinaryIO, limits: RenderLimits, password: str | None
    ) -> None:
        self._source = source
        self._output = output
        self._limits = limits
        self._password = password
        self._suspects: set[int | None] = set()
        self._untouched: set[int] = set()

    def make(self, header: Header, read_pages: ReadPages, wanted: range | None) -> None:
        for _ in range(_MOST_STARTS):
            adding: list[int] = []
            child = self._start()
            try:
                self._fill(child, header, read_pages(), wanted, adding)
            except (ChildDiedError, ChildOvertimeError) as error:
                self._suspect(adding[-1] if adding else None, error)
            else:
                return
            finally:
                child.close()
        raise UnreadableDocumentError(
            "Several pages crashed the program that puts text into them. Export or scan the file "
            "again."
        )

    def _suspect(self, number: int | None, error: Exception) -> None:
        """Note over what a child has ended: a page, or None, the file; the second time it counts.

        A child that ends over a page need not have ended of it: the machine may have been slow
        just then, and the kernel kills for want of memory whom it likes.

        Raises:
            UnreadableDocumentError: it is the file.
        """
        if number not in self._suspects:
            self._suspects.add(number)
        elif number is None:
            raise UnreadableDocumentError(
                "The file crashed the program that puts text into it. Export or scan it again."
            ) from error
        else:
            self._untouched.add(number)

    def _start(self) -> PdfChild:
        return PdfChild(
            self._source,
            self._output,
            self._limits,
            max_output_bytes=2 * self._source.stat().st_size + _MORE_BYTES,
        )

    def _fill(
        self,
        child: PdfChild,
        header: Header,
        pages: Iterator[Page],
        wanted: range | None,
        adding: list[int],
    ) -> None:
        """Open, add and write; ``adding`` holds the page that is being added, if one is."""
        opened = child.open(self._password)
        facts = PageFacts(header)
        for page in pages:
            facts.add(page)
            number = page["page_number"]
            if number in self._untouched:
                continue
            adding[:] = [number]
            try:
                child.ask({"op": "add", "page": page}, timeout_s=self._limits.page_timeout_s)
            except DocumentError:
                # MuPDF cannot change the page, which then stays as it is.
                self._untouched.add(number)
        adding.clear()
        texts = {**facts.as_texts(), **self._without_text()}
        if wanted is None and opened["can_append"]:
            with self._source.open("rb") as stream:
                shutil.copyfileobj(stream, self._output)
            self._output.flush()
            child.ask({"op": "append", "facts": texts}, timeout_s=child.write_timeout_s)
        else:
            last = opened["page_count"]
            chosen = None if wanted is None else [wanted.start, min(wanted.stop - 1, last)]
            request = {"op": "write", "facts": texts, "pages": chosen}
            child.ask(request, timeout_s=child.write_timeout_s)

    def _without_text(self) -> dict[str, str]:
        if not self._untouched:
            return {}
        return {"PagefleetPagesWithoutText": " ".join(map(str, sorted(self._untouched)))}


def _write_images(
    source: Path, output: BinaryIO, header: Header, read_pages: ReadPages, renderer: PageRenderer
) -> None:
    from workers.ocr.raster import encode_page  # noqa: PLC0415 - its libraries, where they are used

    renderer.open(source)
    writer = ImagePdfWriter(output)
    facts = PageFacts(header)
    for page in read_pages():
        facts.add(page)
        if is_failed(page):
            writer.add_notice(" ".join(notices(page)))
            continue
        try:
            rendered = _rendered(page, renderer)
        except PageError as error:
            writer.add_notice(f"Page {page['page_number']} cannot be shown: {error}")
            continue
        if rendered.pixels is None:
            raise ValueError("a page in mode ocr has pixels")
        turns = (page["rotation_deg"] - rendered.rotation_deg) // 90 % 4
        writer.add_image(encode_page(np.rot90(rendered.pixels, -turns)), page)
    writer.finish(facts.as_texts())


def _rendered(page: Page, renderer: PageRenderer) -> RenderedPage:
    """Return a page with its pixels; one that took too long is tried once more in a fresh child.

    Errors of ``PageRenderer.render`` pass through.
    """
    index, dpi = page["page_number"] - 1, page["dpi"]
    try:
        return renderer.render(index, dpi=dpi, mode="ocr")
    except PageTimeoutError:
        return renderer.render(index, dpi=dpi, mode="ocr")
