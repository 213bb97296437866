"""The owner's side of one ``workers.searchable_child``: a PDF is opened in it, and one written.

Of what the child does this knows how long it may take and what its answers mean; retries are its
users' matter.
"""

from pathlib import Path
from typing import Any, BinaryIO, Final

from workers.ocr.errors import (
    DocumentError,
    EmptyDocumentError,
    EncryptedDocumentError,
    PageCrashedError,
    UnreadableDocumentError,
)
from workers.page_renderer import RenderLimits
from workers.render_process import ChildDiedError, RenderProcess

_BYTES_PER_MIB: Final = 2**20
# Writing takes as long as the file is large: this much for each of its MiB.
_WRITE_S_PER_MIB: Final = 1.0
_ERRORS: Final[dict[str, type[DocumentError]]] = {
    error.code: error
    for error in (EmptyDocumentError, EncryptedDocumentError, UnreadableDocumentError)
}


class PdfChild:
    """One running child with a file to write into; ``close`` it when done.

    The file is emptied first: a child before this one may have died while it wrote.

    Args:
        source: the PDF.
        output: a file with a descriptor.
        limits: of the child.
        max_output_bytes: that it may write.

    Errors of ``RenderProcess`` pass through.
    """

    def __init__(
        self, source: Path, output: BinaryIO, limits: RenderLimits, *, max_output_bytes: int
    ) -> None:
        self._source = source
        self._limits = limits
        output.seek(0)
        output.truncate()
        self._process = RenderProcess(
            memory_bytes=limits.memory_bytes,
            max_pixels=1,
            max_pages=limits.max_pages,
            max_file_bytes=limits.max_file_bytes,
            program="workers.searchable_child",
            output=(output.fileno(), max_output_bytes),
        )

    @property
    def write_timeout_s(self) -> float:
        """Seconds that writing the whole file may take."""
        size_mib = self._source.stat().st_size / _BYTES_PER_MIB
        return self._limits.open_timeout_s + _WRITE_S_PER_MIB * size_mib

    def open(self, password: str | None) -> dict[str, Any]:
        """Open the PDF, and return what the child says of it.

        Errors of ``ask`` pass through.
        """
        return self.ask(
            {"op": "open", "path": str(self._source.resolve()), "password": password},
            timeout_s=self._limits.open_timeout_s,
        )

    def ask(self, request: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Ask the child and wait for its answer.

        Raises:
            DocumentError: it says that the file, or the page that the request is about, is at
                fault.
            ChildDiedError: it died, or ran out of memory.
            ChildOvertimeError: its time is over.
        """
        self._process.ask(request, timeout_s=timeout_s)
        answer = self._process.receive()
        if "ok" in answer:
            return dict(answer["ok"])
        code, message = answer["error"]["code"], answer["error"]["message"]
        if code == PageCrashedError.code:
            raise ChildDiedError(message)
        raise _ERRORS.get(code, UnreadableDocumentError)(message)

    def close(self) -> None:
        """End the child, whatever it does; a second call does nothing."""
        self._process.close()
