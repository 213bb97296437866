"""Pages of one document at a time, rendered ahead in a child process under limits.

The one way by which split, recognition and ``pagefleet ocr`` open a file. The child does what is
dangerous (``workers.render_child``); this module decides what its end means for page and document.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from workers.ocr.errors import (
    DamagedPageError,
    DocumentError,
    EmptyDocumentError,
    EncryptedDocumentError,
    FileTooLargeError,
    OcrError,
    PageCrashedError,
    PageError,
    PageTimeoutError,
    PageTooLargeError,
    TooManyPagesError,
    UnreadableDocumentError,
    UnsupportedMediaTypeError,
)
from workers.ocr.formats import MediaType
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.page_image import PageFailure
from workers.ocr.rendered_page import RenderedPage, page_from_json
from workers.render_process import ChildDiedError, ChildOvertimeError, RenderProcess

_DOCUMENT_ERRORS: Final[dict[str, type[DocumentError]]] = {
    error.code: error
    for error in (
        EmptyDocumentError,
        EncryptedDocumentError,
        UnreadableDocumentError,
        UnsupportedMediaTypeError,
    )
}
_TOO_LARGE_ERRORS: Final = {error.code: error for error in (FileTooLargeError, TooManyPagesError)}
_PAGE_ERRORS: Final[dict[str, type[PageError]]] = {
    error.code: error for error in (DamagedPageError, PageTooLargeError)
}
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """What a document and its pages may cost.

    Attributes:
        max_pixels: of one page image; 60 million is A0 at 196 dpi, A4 at 780 dpi. Three bytes
            each are shared with the child.
        max_pages: of one document.
        max_file_bytes: of one file.
        page_timeout_s: wall clock for one page. The slowest honest page of the corpus takes 1 s.
        open_timeout_s: wall clock for opening, repair included.
        memory_bytes: address space of the child, of which it has 0.35 GiB when started, page buffer
            included; an image of 9000 x 9000 pixels on a page takes 0.4 GiB more.
        pages_per_child: after so many pages and documents a fresh one takes over, against leaks in
            libraries.
    """

    max_pixels: int = 60_000_000
    max_pages: int = 10_000
    max_file_bytes: int = 2 * 1024**3
    page_timeout_s: float = 30.0
    open_timeout_s: float = 30.0
    memory_bytes: int = 2 * 1024**3
    pages_per_child: int = 1_000


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What is known of a document once it is open; ``page_count`` is at least 1."""

    media_type: MediaType
    page_count: int


@dataclass(frozen=True, slots=True)
class _Document:
    path: Path
    password: str | None
    page_count: int


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One page and how it is to be rendered, as the child is asked for it."""

    page_index: int
    dpi: float
    mode: Mode
    text_order: TextOrder


class PageRenderer:
    """Owns at most one render child, which lives on from document to document.

    A context manager; the child ends with it. Not for two threads at once. A child that died or
    was killed is replaced at the next request, and the document opened again in the fresh one.

    A child that dies over a page or a file need not have died of it: the kernel kills for want of
    memory whom it likes. Both are tried once more in a fresh child before they are given up; the
    child's own word that its memory limit is reached, and overtime, stand at once.
    """

    def __init__(self, limits: RenderLimits) -> None:
        self._limits = limits
        self._child: RenderProcess | None = None
        self._served_count = 0  # pages and documents that this child was asked for
        self._document: _Document | None = None
        self._is_open_in_child = False
        self._asked: _Wanted | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._drop_child()

    @property
    def limits(self) -> RenderLimits:
        """What a document and its pages may cost."""
        return self._limits

    @property
    def child_pid(self) -> int | None:
        """Process id of the child, None while there is none."""
        return None if self._child is None else self._child.pid

    def open(self, path: Path, *, password: str | None = None) -> DocumentInfo:
        """Open a document and close the one before.

        Raises:
            DocumentError: one of its kinds, also where the file crashed its reader.
            OSError: the file is not there, may not be read, or is no regular file.
            RenderChildError: the child cannot be started.
        """
        # Here and not in the child: a missing file is the caller's fault, not the document's.
        _require_regular_file(path)
        self._document = None
        self._settle()
        opened = self._open_in_child(path.resolve(), password)
        self._document = _Document(path.resolve(), password, opened.page_count)
        return opened

    def close(self) -> None:
        """Close the document, so that its file can go; the child waits for the next one."""
        self._document = None
        self._settle()
        if self._child is None or not self._is_open_in_child:
            return
        self._is_open_in_child = False
        self._child.ask({"op": "close"}, timeout_s=self._limits.open_timeout_s)
        try:
            self._child.receive()
        except (ChildDiedError, ChildOvertimeError):
            self._drop_child()

    def render(
        self,
        page_index: int,
        *,
        dpi: float,
        mode: Mode = "ocr",
        text_order: TextOrder = "reading",
    ) -> RenderedPage:
        """Return one page of the open document.

        Args:
            page_index: 0-based.
            dpi: wanted resolution of PDF pages; see ``workers.ocr.sources.PageSource``.
            mode: likewise.
            text_order: likewise.

        Raises:
            PageError: one of its kinds; the next page can be asked for.
            DocumentError: a fresh child cannot open the document any more.
            ValueError: no document is open, or it has no such page.
            RenderChildError: the child cannot be started.
        """
        return self._render(_Wanted(page_index, dpi, mode, text_order))

    def pages(
        self,
        page_indexes: Iterable[int],
        *,
        dpi: float,
        mode: Mode = "ocr",
        text_order: TextOrder = "reading",
    ) -> Iterator[RenderedPage | PageFailure]:
        """Yield the pages in the order asked for; the next one renders while one is worked on.

        A page that fails is yielded as its failure, and the others go on. What makes the next
        page impossible is raised after the page before it has been yielded.

        Raises:
            DocumentError: a fresh child cannot open the document any more.
            ValueError: no document is open, or it has no such page.
            RenderChildError: the child cannot be started.
        """
        following = (_Wanted(index, dpi, mode, text_order) for index in page_indexes)
        wanted = next(following, None)
        while wanted is not None:
            outcome: RenderedPage | PageFailure
            try:
                outcome = self._render(wanted)
            except PageError as error:
                outcome = PageFailure(wanted.page_index, error.code, str(error))
            wanted = next(following, None)
            obstacle: OcrError | ValueError | None = None
            if wanted is not None:
                try:
                    self._ask_for_page(wanted)
                except (OcrError, ValueError) as error:
                    # Raised here it would take with it a page that is done.
                    obstacle = error
            yield outcome
            if obstacle is not None:
                raise obstacle

    def _render(self, wanted: _Wanted) -> RenderedPage:
        if self._asked != wanted:
            self._ask_for_page(wanted)
        return self._take_page()

    def _ask_for_page(self, wanted: _Wanted) -> None:
        document = self._document
        if document is None:
            raise ValueError("no document is open")
        if not 0 <= wanted.page_index < document.page_count:
            raise ValueError(f"page index {wanted.page_index} of {document.page_count} pages")
        self._settle()
        self._running_child()
        if not self._is_open_in_child:
            self._open_in_child(document.path, document.password)
        assert self._child is not None  # noqa: S101 - it runs, for the type checker
        self._asked = wanted
        self._served_count += 1
        self._child.ask({"op": "render", **asdict(wanted)}, timeout_s=self._limits.page_timeout_s)

    def _take_page(self) -> RenderedPage:
        """Wait for the page that was asked for, and copy it out of the shared buffer.

        Raises:
            PageTimeoutError: its time is over.
            PageCrashedError: the child ran out of memory; or it, and then a fresh one, died or
                answered nonsense.
            DocumentError: the fresh child cannot open the document any more.
            RenderChildError: there is no fresh child.
        """
        asked = self._asked
        assert asked is not None  # noqa: S101 - render() has just asked, for the type checker
        try:
            return self._receive_page(asked.page_index)
        except ChildDiedError:
            self._drop_child()
        self._ask_for_page(asked)
        try:
            return self._receive_page(asked.page_index)
        except ChildDiedError as error:
            self._drop_child()
            raise PageCrashedError(
                "The page crashed the program that renders it. Export or scan it again."
            ) from error

    def _receive_page(self, page_index: int) -> RenderedPage:
        """Wait for a page once.

        Raises:
            PageError: what the child says of it.
            PageTimeoutError: its time is over.
            ChildDiedError: the child died, or answered nonsense.
        """
        assert self._child is not None  # noqa: S101 - it has been asked, for the type checker
        try:
            answer = self._child.receive()
            self._asked = None
            if "error" in answer:
                raise self._page_error(answer["error"])
            return page_from_json(page_index, answer["ok"], take_pixels=self._child.copy_pixels)
        except ChildOvertimeError as error:
            self._drop_child()
            raise PageTimeoutError(
                f"The page took longer than {self._limits.page_timeout_s:g} s to render. Simplify "
                "the page, or raise the time limit."
            ) from error
        except ValueError as error:
            raise ChildDiedError("its answer is no page") from error

    def _page_error(self, answer: dict[str, Any]) -> PageError:
        if answer["code"] == PageCrashedError.code:
            self._drop_child()
            return PageCrashedError(
                f"Rendering the page needs more than {self._limits.memory_bytes // _MIB} MiB of "
                "memory. Simplify the page, or raise the memory limit."
            )
        return _PAGE_ERRORS[answer["code"]](answer["message"])

    def _settle(self) -> None:
        """Let a page that nobody came for finish, so that the child hears the next request."""
        if self._asked is None or self._child is None:
            return
        try:
            self._child.receive()
        except (ChildDiedError, ChildOvertimeError):
            self._drop_child()
        self._asked = None

    def _open_in_child(self, path: Path, password: str | None) -> DocumentInfo:
        try:
            try:
                answer = self._opening_answer(path, password)
            except ChildDiedError:
                self._drop_child()
                answer = self._opening_answer(path, password)
        except ChildOvertimeError as error:
            self._drop_child()
            raise UnreadableDocumentError(
                f"Opening the file took longer than {self._limits.open_timeout_s:g} s. Export or "
                "scan it again."
            ) from error
        except ChildDiedError as error:
            self._drop_child()
            raise UnreadableDocumentError(
                "The file crashed the program that opens it. Export or scan it again."
            ) from error
        if "error" in answer:
            raise self._document_error(answer["error"])
        self._is_open_in_child = True
        return DocumentInfo(MediaType(answer["ok"]["media_type"]), answer["ok"]["page_count"])

    def _opening_answer(self, path: Path, password: str | None) -> dict[str, Any]:
        child = self._running_child()
        self._is_open_in_child = False
        self._served_count += 1
        child.ask(
            {"op": "open", "path": str(path), "password": password},
            timeout_s=self._limits.open_timeout_s,
        )
        return child.receive()

    def _document_error(self, answer: dict[str, Any]) -> DocumentError:
        code, message = answer["code"], answer["message"]
        if code == PageCrashedError.code:
            self._drop_child()
            return UnreadableDocumentError(
                f"Opening the file needs more than {self._limits.memory_bytes // _MIB} MiB of "
                "memory. Export or scan it again."
            )
        if code in _TOO_LARGE_ERRORS:
            return _TOO_LARGE_ERRORS[code](message, limit=answer["limit"], actual=answer["actual"])
        return _DOCUMENT_ERRORS[code](message)

    def _running_child(self) -> RenderProcess:
        """Return the child, a fresh one where there is none, it died, or it has done its share."""
        if self._child is not None and (
            not self._child.is_alive or self._served_count >= self._limits.pages_per_child
        ):
            self._drop_child()
        if self._child is None:
            self._served_count = 0
            self._child = RenderProcess(
                memory_bytes=self._limits.memory_bytes,
                max_pixels=self._limits.max_pixels,
                max_pages=self._limits.max_pages,
                max_file_bytes=self._limits.max_file_bytes,
            )
        return self._child

    def _drop_child(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None
        self._is_open_in_child = False
        self._asked = None


def _require_regular_file(path: Path) -> None:
    """Refuse what cannot be opened, and what would wait for a writer or act when it is opened.

    Raises:
        OSError: it is not there, may not be read, or is a folder, pipe, socket or device.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "It is no regular file", str(path))
    # Without waiting: it may have become a pipe meanwhile.
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
