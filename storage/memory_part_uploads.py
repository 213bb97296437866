"""Objects in memory that are sent in parts: the twin of those of S3."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from uuid import uuid4

from storage.errors import ObjectChangedError, ObjectNotFoundError
from storage.part_uploads import StoredPart


class InMemoryPartUploads:
    """Keeps parts in a dictionary; its addresses open nowhere, ``receive`` stands for them."""

    def __init__(self, put: Callable[[str, bytes], None]) -> None:
        self._put = put
        self._parts: dict[tuple[str, str], dict[int, bytes]] = {}
        self._lock = threading.Lock()

    def begin(self, key: str) -> str:
        parts_id = uuid4().hex
        with self._lock:
            self._parts[key, parts_id] = {}
        return parts_id

    def presign(
        self, key: str, parts_id: str, *, number: int, size_bytes: int, expires_s: int
    ) -> str:
        return f"memory://{key}?id={parts_id}&part={number}&size={size_bytes}&expires={expires_s}"

    def receive(self, key: str, parts_id: str, number: int, body: bytes) -> None:
        """Take a part, as if somebody had sent it to its address."""
        with self._lock:
            self._parts_of(key, parts_id)[number] = body

    def list(self, key: str, parts_id: str, *, after: int = 0) -> Iterator[StoredPart]:
        with self._lock:
            parts = sorted(self._parts_of(key, parts_id).items())
        yield from (_describe(number, body) for number, body in parts if number > after)

    def finish(self, key: str, parts_id: str, parts: Iterable[StoredPart]) -> None:
        with self._lock:
            sent = self._parts_of(key, parts_id)
            bodies = []
            for part in parts:
                body = sent.get(part.number)
                if body is None or _describe(part.number, body) != part:
                    raise ObjectChangedError(key)
                bodies.append(body)
            del self._parts[key, parts_id]
        self._put(key, b"".join(bodies))

    def abort(self, key: str, parts_id: str | None) -> None:
        with self._lock:
            for found in [each for each in self._parts if each[0] == key]:
                if parts_id in {None, found[1]}:
                    del self._parts[found]

    def _parts_of(self, key: str, parts_id: str) -> dict[int, bytes]:
        try:
            return self._parts[key, parts_id]
        except KeyError:
            raise ObjectNotFoundError(key) from None


def _describe(number: int, body: bytes) -> StoredPart:
    return StoredPart(number, len(body), hashlib.md5(body, usedforsecurity=False).hexdigest())
