"""The bytes of one document on their way to storage, in one pass."""

import hashlib
from contextlib import AbstractContextManager
from dataclasses import dataclass

from storage.object_store import ObjectStore, ObjectWriter
from workers.ocr.errors import EmptyDocumentError, FileTooLargeError, UnsupportedMediaTypeError
from workers.ocr.formats import HEAD_BYTES, MediaType, sniff, stated_pixels


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A document's file as it stands in storage.

    Attributes:
        key: of the object.
        media_type: told from the content.
        size_bytes: of the file.
        sha256: in lower-case hex.
        stated_pixels: of an image whose first bytes tell; what it says of itself.
    """

    key: str
    media_type: MediaType
    size_bytes: int
    sha256: str
    stated_pixels: int | None


class SourceUpload:
    """Counts, hashes, checks and stores a file while it arrives; used by one thread at a time.

    Its type is told from its first bytes before anything is stored. The object exists only
    after ``finish``; ``abort``, or an error of ``write``, leaves none.
    """

    def __init__(self, store: ObjectStore, key: str, *, max_bytes: int) -> None:
        self._store = store
        self._key = key
        self._max_bytes = max_bytes
        self._head = b""
        self._hash = hashlib.sha256()
        self._size_bytes = 0
        self._media_type: MediaType | None = None
        self._stated_pixels: int | None = None
        self._opened: AbstractContextManager[ObjectWriter] | None = None
        self._writer: ObjectWriter | None = None

    def write(self, block: bytes) -> None:
        """Take the next bytes, of any length.

        Raises:
            FileTooLargeError: more bytes than the limit.
            UnsupportedMediaTypeError: the content is none of the formats that are read.
            StorageError: the store does not take them.
        """
        self._size_bytes += len(block)
        if self._size_bytes > self._max_bytes:
            raise FileTooLargeError(
                f"the file has more than {self._max_bytes:,} bytes",
                limit=self._max_bytes,
                actual=self._size_bytes,
            )
        self._hash.update(block)
        if self._writer is None:
            self._head += block
            if len(self._head) >= HEAD_BYTES:
                self._open()
        else:
            self._writer.write(block)

    def finish(self) -> StoredSource:
        """Close the object and describe it.

        Raises:
            EmptyDocumentError: there were no bytes.
            UnsupportedMediaTypeError: the content is none of the formats that are read.
            StorageError: the store does not take it.
            RuntimeError: the upload is over already; a mistake of the caller.
        """
        if self._size_bytes == 0:
            raise EmptyDocumentError("the file has no bytes")
        if self._writer is None:
            self._open()
        opened, self._opened = self._opened, None
        if opened is None or self._media_type is None:
            raise RuntimeError("a finished or aborted upload was finished")
        opened.__exit__(None, None, None)
        return StoredSource(
            key=self._key,
            media_type=self._media_type,
            size_bytes=self._size_bytes,
            sha256=self._hash.hexdigest(),
            stated_pixels=self._stated_pixels,
        )

    def abort(self, reason: BaseException) -> None:
        """Leave no object; nothing happens when none was opened, or after ``finish``."""
        opened, self._opened = self._opened, None
        if opened is not None:
            try:
                opened.__exit__(type(reason), reason, reason.__traceback__)
            except type(reason):
                # A writer may raise again what it is left with; the caller does so itself.
                return

    def _open(self) -> None:
        self._media_type = sniff(self._head[:HEAD_BYTES])
        if self._media_type is None:
            raise UnsupportedMediaTypeError("the content is none of the formats that are read")
        self._stated_pixels = stated_pixels(self._head[:HEAD_BYTES], self._media_type)
        self._opened = self._store.writer(self._key, media_type=self._media_type)
        self._writer = self._opened.__enter__()
        self._writer.write(self._head)
        self._head = b""
