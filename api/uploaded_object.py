"""The object that a client has sent in parts: put together, and read once to its end."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from api.direct_upload_views import plan_of
from api.errors import ApiError
from api.source_upload import StoredSource
from db.intake_models import DirectUpload
from storage import keys
from storage.errors import ObjectChangedError, ObjectNotFoundError
from storage.object_store import ObjectStore
from storage.part_uploads import StoredPart
from workers.ocr.errors import UnsupportedMediaTypeError
from workers.ocr.formats import HEAD_BYTES, sniff, stated_pixels

_NAMED_PARTS = 100


class UploadMismatchError(Exception):
    """What lies in storage is not what was announced."""


def put_together(upload: DirectUpload, etags: Mapping[int, str], store: ObjectStore) -> None:
    """Make one object of the parts, unless an earlier try got so far.

    Raises:
        ApiError: parts are missing, or others than they should be.
        UploadMismatchError: storage has lost them.
        StorageError: storage does not do its part.
    """
    key, parts_id = keys.source_key(upload.id), upload.parts_id or ""
    if _is_whole(upload, store):
        return
    try:
        parts = _parts_of(upload, etags, store.part_uploads.list(key, parts_id))
        missing = [number for number in plan_of(upload).numbers if number not in parts]
        if missing:
            raise ApiError("upload_incomplete", extra={"missing_parts": missing[:_NAMED_PARTS]})
        store.part_uploads.finish(key, parts_id, [parts[number] for number in sorted(parts)])
    except ObjectChangedError as error:
        raise ApiError("upload_incomplete") from error  # a part was sent once more meanwhile
    except ObjectNotFoundError as error:
        # The answer to an earlier try was lost; or a rule of the bucket has removed the parts.
        if not _is_whole(upload, store):
            raise UploadMismatchError from error


def _parts_of(
    upload: DirectUpload, etags: Mapping[int, str], stored: Iterable[StoredPart]
) -> dict[int, StoredPart]:
    """Return the parts that are as they should be, by number; of several the latest."""
    plan = plan_of(upload)
    return {
        part.number: part
        for part in stored
        if part.number in plan.numbers
        and part.size_bytes == plan.size_of(part.number)
        and part.etag == etags.get(part.number, part.etag)
    }


def _is_whole(upload: DirectUpload, store: ObjectStore) -> bool:
    try:
        found = store.head(keys.source_key(upload.id))
    except ObjectNotFoundError:
        return False
    if found.size_bytes != upload.size_bytes:
        raise UploadMismatchError
    return True


class ObjectReading:
    """Counts and hashes an object while it is read; keeps its first bytes alone."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._head = b""
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def read_part(self) -> bool:
        """Read on; False: that was the end.

        Raises:
            UnsupportedMediaTypeError: the beginning is of none of the formats that are read.
            StorageError: it cannot be read.
        """
        part = next(self._parts, b"")
        if not self._size_bytes:
            self._head = part[:HEAD_BYTES]
            if sniff(self._head) is None:
                raise UnsupportedMediaTypeError("the content is none of the formats that are read")
        self._hash.update(part)
        self._size_bytes += len(part)
        return bool(part)

    def describe(self, upload: DirectUpload) -> StoredSource:
        """Say what was read to its end.

        Raises:
            UploadMismatchError: it is not what was announced.
            UnsupportedMediaTypeError: it is none of the formats that are read.
        """
        media_type = sniff(self._head)
        if media_type is None:
            raise UnsupportedMediaTypeError("the content is none of the formats that are read")
        sha256 = self._hash.hexdigest()
        if (self._size_bytes, sha256) != (upload.size_bytes, upload.sha256 or sha256):
            raise UploadMismatchError
        return StoredSource(
            key=keys.source_key(upload.id),
            media_type=media_type,
            size_bytes=self._size_bytes,
            sha256=sha256,
            stated_pixels=stated_pixels(self._head, media_type),
        )

    def close(self) -> None:
        """Give the connection back, wherever the reading got to."""
        close = getattr(self._parts, "close", None)
        if close is not None:
            close()
