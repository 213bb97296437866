"""Write a PDF without its encryption, in a child under limits (``workers.searchable_child``)."""

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
from workers.render_process import ChildDiedError, ChildOvertimeError, RenderProcess

_BYTES_PER_MIB: Final = 2**20
# A file of compressed object streams grows when it is written anew.
_MORE_BYTES: Final = 64 * _BYTES_PER_MIB
_GROWTH: Final = 4
_WRITE_S_PER_MIB: Final = 1.0
_ERRORS: Final[dict[str, type[DocumentError]]] = {
    error.code: error
    for error in (EmptyDocumentError, EncryptedDocumentError, UnreadableDocumentError)
}


def write_unlocked(source: Path, output: BinaryIO, *, password: str, limits: RenderLimits) -> None:
    """Write an encrypted PDF so that it opens without a password, and is the same else.

    Args:
        source: the file as it came.
        output: an empty file with a descriptor.
        password: that opens it.
        limits: of the child.

    Raises:
        EncryptedDocumentError: the password is wrong.
        UnreadableDocumentError: the file cannot be opened, or not be written.
        RenderChildError: the child cannot be started.
    """
    try:
        _write_once(source, output, password, limits)
    except (ChildDiedError, ChildOvertimeError):
        # It need not have ended of the file: the machine may have been slow, or short of memory.
        output.truncate(0)
        try:
            _write_once(source, output, password, limits)
        except (ChildDiedError, ChildOvertimeError) as error:
            raise UnreadableDocumentError(
                "The file crashed the program that removes its encryption. Send it without "
                "encryption."
            ) from error


def _write_once(source: Path, output: BinaryIO, password: str, limits: RenderLimits) -> None:
    size_bytes = source.stat().st_size
    opening_s = limits.open_timeout_s
    writing_s = opening_s + _WRITE_S_PER_MIB * size_bytes / _BYTES_PER_MIB
    child = RenderProcess(
        memory_bytes=limits.memory_bytes,
        max_pixels=1,
        max_pages=limits.max_pages,
        max_file_bytes=limits.max_file_bytes,
        program="workers.searchable_child",
        output=(output.fileno(), _GROWTH * size_bytes + _MORE_BYTES),
    )
    try:
        request = {"op": "open", "path": str(source.resolve()), "password": password}
        _ask(child, request, timeout_s=opening_s)
        _ask(child, {"op": "unlock"}, timeout_s=writing_s)
    finally:
        child.close()


def _ask(child: RenderProcess, request: dict[str, Any], *, timeout_s: float) -> None:
    """Ask the child and wait for its answer.

    Raises:
        DocumentError: it says that the file is at fault.
        ChildDiedError: it died, or ran out of memory.
        ChildOvertimeError: its time is over.
    """
    child.ask(request, timeout_s=timeout_s)
    answer = child.receive()
    if "ok" in answer:
        return
    code, message = answer["error"]["code"], answer["error"]["message"]
    if code == PageCrashedError.code:
        raise ChildDiedError(message)
    raise _ERRORS.get(code, UnreadableDocumentError)(message)
