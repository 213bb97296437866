"""Copy a document's source out of a user's bucket: one pass, a few parts of memory."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from storage import keys, source_object
from storage.object_store import ObjectStore
from storage.source_object import SourceObject
from workers.ocr.errors import EmptyDocumentError, FileTooLargeError, UnsupportedMediaTypeError
from workers.ocr.formats import HEAD_BYTES, MediaType, sniff


@dataclass(frozen=True, slots=True)
class CopiedSource:
    """What a source turned out to be; ``sha256`` in lower-case hex."""

    media_type: MediaType
    size_bytes: int
    sha256: str


class SourceCopier:
    """Copies objects of users to where the bytes of a document lie.

    Args:
        store: takes the copies, and opens the buckets of users.
        max_bytes: of a source.
    """

    def __init__(self, store: ObjectStore, *, max_bytes: int) -> None:
        self._store = store
        self._max_bytes = max_bytes

    def copy(
        self, document_id: UUID, source: SourceObject, *, check: Callable[[], None]
    ) -> CopiedSource:
        """Copy one source; run twice, the second copy replaces the first by the same bytes.

        Args:
            document_id: whose source it becomes.
            source: as it was accepted; of one that was not found then, it is what is there now.
            check: is called between two parts; what it raises ends the copy.

        Raises:
            EmptyDocumentError: the object has no bytes.
            FileTooLargeError: it has more than the limit.
            UnsupportedMediaTypeError: it is of no format that is read.
            ObjectChangedError: the object is not the accepted one any more.
            SourceNotFoundError: there is none.
            StorageError: one of the stores does not do its part.
        """
        if not source.etag:
            source = source_object.describe(self._store, source.address)
        if source.size_bytes == 0:
            raise EmptyDocumentError("the object has no bytes")
        if source.size_bytes > self._max_bytes:
            raise FileTooLargeError(
                f"the object has more than {self._max_bytes:,} bytes",
                limit=self._max_bytes,
                actual=source.size_bytes,
            )
        parts = source_object.stream(self._store, source)
        first = next(parts)
        media_type = sniff(first[:HEAD_BYTES])
        if media_type is None:
            raise UnsupportedMediaTypeError("the content is none of the formats that are read")
        digest = hashlib.sha256(first)
        with self._store.writer(keys.source_key(document_id), media_type=media_type) as written:
            written.write(first)
            for part in parts:
                check()
                digest.update(part)
                written.write(part)
        return CopiedSource(media_type, source.size_bytes, digest.hexdigest())
