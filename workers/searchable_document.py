"""Make a searchable PDF of a document and its stored result, without any server.

A PDF keeps its pages and gets hidden text, in a child under limits (``workers.searchable_child``).
An image becomes a PDF of its page images, which the render child decodes; that PDF is written here,
page by page, from pixels and numbers alone.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from workers.ocr.errors import (
    DocumentError,
    EmptyDocumentError,
    EncryptedDocumentError,
    PageCrashedError,
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
from workers.render_process import ChildDiedError, ChildOvertimeError, RenderProcess

ReadPages = Callable[[], Iterator[Page]]
"""Reads the wanted page objects from the beginning, in page order."""

# Hidden text is small beside pages, but a page without images may get more than it had.
_MORE_BYTES: Final = 512 * 2**20
# Enough for two pages that are given up, each tried twice.
_MOST_STARTS: Final = 5
# Writing takes as long as the file is large: this much for each of its MiB.
_WRITE_S_PER_MIB: Final = 1.0
_ERRORS: Final[dict[str, type[DocumentError]]] = {
    error.code: error
    for error in (EmptyDocumentError, EncryptedDocumentError, UnreadableDocumentError)
}


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

    def _start(self) -> RenderProcess:
        limits = self._limits
        size_bytes = self._source.stat().st_size
        return RenderProcess(
            memory_bytes=limits.memory_bytes,
            max_pixels=1,
            max_pages=limits.max_pages,
            max_file_bytes=limits.max_file_bytes,
            program="workers.searchable_child",
            output=(self._output.fileno(), 2 * size_bytes + _MORE_BYTES),
        )

    def _fill(
        self,
        child: RenderProcess,
        header: Header,
        pages: Iterator[Page],
        wanted: range | None,
        adding: list[int],
    ) -> None:
        """Open, add and write; ``adding`` holds the page that is being added, if one is."""
        path = str(self._source.resolve())
        opened = self._ask(
            child,
            {"op": "open", "path": path, "password": self._password},
            timeout_s=self._limits.open_timeout_s,
        )
        facts = PageFacts(header)
        for page in pages:
            facts.add(page)
            number = page["page_number"]
            if number in self._untouched:
                continue
            adding[:] = [number]
            try:
                self._ask(child, {"op": "add", "page": page}, timeout_s=self._limits.page_timeout_s)
            except _PageRefusedError:
                self._untouched.add(number)
        adding.clear()
        texts = {**facts.as_texts(), **self._without_text()}
        os.ftruncate(self._output.fileno(), 0)
        self._output.seek(0)
        timeout_s = self._limits.open_timeout_s
        timeout_s += _WRITE_S_PER_MIB * self._source.stat().st_size / 2**20
        if wanted is None and opened["can_append"]:
            with self._source.open("rb") as stream:
                shutil.copyfileobj(stream, self._output)
            self._output.flush()
            self._ask(child, {"op": "append", "facts": texts}, timeout_s=timeout_s)
        else:
            last = opened["page_count"]
            chosen = None if wanted is None else [wanted.start, min(wanted.stop - 1, last)]
            request = {"op": "write", "facts": texts, "pages": chosen}
            self._ask(child, request, timeout_s=timeout_s)

    def _without_text(self) -> dict[str, str]:
        if not self._untouched:
            return {}
        return {"PagefleetPagesWithoutText": " ".join(map(str, sorted(self._untouched)))}

    @staticmethod
    def _ask(child: RenderProcess, request: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Ask the child and wait for its answer.

        Raises:
            DocumentError: it says that the file is at fault.
            _PageRefusedError: a page could not be changed.
            ChildDiedError: it died, or ran out of memory.
            ChildOvertimeError: its time is over.
        """
        child.ask(request, timeout_s=timeout_s)
        answer = child.receive()
        if "ok" in answer:
            return dict(answer["ok"])
        code, message = answer["error"]["code"], answer["error"]["message"]
        if code == PageCrashedError.code:
            raise ChildDiedError(message)
        if request["op"] == "add":
            raise _PageRefusedError(message)
        raise _ERRORS.get(code, UnreadableDocumentError)(message)


class _PageRefusedError(Exception):
    """MuPDF cannot change a page, which then stays as it is."""


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
