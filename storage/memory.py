"""An object store in memory: the twin of S3 for tests and trials, held to the same contract."""

import hashlib
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from storage.errors import ObjectChangedError, ObjectNotFoundError
from storage.memory_part_uploads import InMemoryPartUploads
from storage.object_store import PART_BYTES, ObjectWriter, StoredObject, check_range


class InMemoryObjectStore:
    """Keeps objects in a dictionary; what it hands out as addresses opens nowhere."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._others: dict[str, InMemoryObjectStore] = {}
        self._lock = threading.Lock()
        self.part_uploads = InMemoryPartUploads(
            lambda key, body: self.put(key, body, media_type="application/octet-stream")
        )

    def put(self, key: str, body: bytes, *, media_type: str) -> None:
        del media_type
        with self._lock:
            self._objects[key] = bytes(body)

    @contextmanager
    def writer(self, key: str, *, media_type: str) -> Iterator[ObjectWriter]:
        written = _Buffer()
        yield written
        self.put(key, bytes(written.content), media_type=media_type)

    def get(self, key: str) -> bytes:
        with self._lock:
            try:
                return self._objects[key]
            except KeyError:
                raise ObjectNotFoundError(key) from None

    def read_range(self, key: str, *, start: int, stop: int) -> bytes:
        check_range(start, stop)
        return self.get(key)[start:stop]

    def stream(
        self,
        key: str,
        *,
        part_bytes: int = PART_BYTES,
        version_id: str | None = None,
        etag: str | None = None,
        start: int = 0,
    ) -> Iterator[bytes]:
        _require_no_version(key, version_id)
        body = self.get(key)
        if etag is not None and _describe(key, body).etag != etag:
            raise ObjectChangedError(key)
        return (body[at : at + part_bytes] for at in range(start, len(body), part_bytes))

    def head(self, key: str, *, version_id: str | None = None) -> StoredObject:
        _require_no_version(key, version_id)
        return _describe(key, self.get(key))

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredObject]:
        with self._lock:
            found = sorted(
                (key, body)
                for key, body in self._objects.items()
                if key.startswith(prefix) and key > after
            )
        yield from (_describe(key, body) for key, body in found)

    def delete(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._objects.pop(key, None)

    def presign_get(self, key: str, *, expires_s: int) -> str:
        return f"memory://{key}?method=GET&expires={expires_s}"

    def presign_put(self, key: str, *, media_type: str, expires_s: int) -> str:
        return f"memory://{key}?method=PUT&type={media_type}&expires={expires_s}"

    def other_bucket(self, name: str) -> "InMemoryObjectStore":
        return self._others.setdefault(name, InMemoryObjectStore())

    def check(self) -> None:
        return


class _Buffer:
    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, part: bytes) -> None:
        self.content += part


def _require_no_version(key: str, version_id: str | None) -> None:
    if version_id is not None:
        raise ObjectNotFoundError(f"{key} has no versions here")


def _describe(key: str, body: bytes) -> StoredObject:
    # An etag is the MD5 of a single part in S3; here it only has to differ with the content.
    etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return StoredObject(key, len(body), etag)
