"""Write a PDF without its encryption, and store it beside the document's source.

It is written in a child under limits (``workers.searchable_child``).
"""

import hashlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID

from storage import keys
from storage.object_store import PART_BYTES, ObjectStore
from workers.ocr.errors import UnreadableDocumentError
from workers.ocr.formats import MediaType
from workers.page_renderer import RenderLimits
from workers.pdf_child import PdfChild
from workers.render_process import ChildDiedError, ChildOvertimeError

# A file of compressed object streams grows when it is written anew.
_MORE_BYTES: Final = 64 * 2**20
_GROWTH: Final = 4
_TRIES: Final = 2


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
    max_output_bytes = _GROWTH * source.stat().st_size + _MORE_BYTES
    ended: ChildDiedError | ChildOvertimeError | None = None
    # A child that ends need not have ended of the file: the machine may have been slow, or short of
    # memory.
    for _ in range(_TRIES):
        child = PdfChild(source, output, limits, max_output_bytes=max_output_bytes)
        try:
            with closing(child):
                child.open(password)
                child.ask({"op": "unlock"}, timeout_s=child.write_timeout_s)
        except (ChildDiedError, ChildOvertimeError) as error:
            ended = error
        else:
            return
    raise UnreadableDocumentError(
        "The file crashed the program that removes its encryption. Send it without encryption."
    ) from ended


def store_unlocked(
    store: ObjectStore,
    document_id: UUID,
    attempt: int,
    file: BinaryIO,
    *,
    check: Callable[[], None],
) -> tuple[str, str]:
    """Store the bytes of a document without their encryption; return their key and SHA-256.

    Args:
        store: takes them.
        document_id: whose they are.
        attempt: of the split, beside whose others they lie.
        file: is read from its beginning.
        check: is called between two parts; what it raises ends the copy.

    Raises:
        StorageError: the store does not do its part.
    """
    key = keys.unlocked_source_key(document_id, attempt)
    digest = hashlib.sha256()
    file.seek(0)
    with store.writer(key, media_type=MediaType.PDF) as written:
        while part := file.read(PART_BYTES):
            check()
            digest.update(part)
            written.write(part)
    return key, digest.hexdigest()
