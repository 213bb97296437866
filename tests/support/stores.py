"""Stores that fail in one way each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from storage.errors import StorageError, StorageUnavailableError
from storage.memory import InMemoryObjectStore
from storage.object_store import ObjectWriter, StoredObject


class RefusingObjectStore(InMemoryObjectStore):
    """Hands out what it has, but ``refused`` keys, and takes nothing while ``is_away``."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.refused: dict[str, StorageError] = {}

    def read_range(self, key: str, *, start: int, stop: int) -> bytes:
        if key in self.refused:
            raise self.refused[key]
        return super().read_range(key, start=start, stop=stop)

    @contextmanager
    def writer(self, key: str, *, media_type: str) -> Iterator[ObjectWriter]:
        if self.is_away:
            raise StorageUnavailableError(key)
        with super().writer(key, media_type=media_type) as written:
            yield written


class StoreWithACallback(InMemoryObjectStore):
    """Says when an object is complete, so that a test can do something just then."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self._then = then

    @contextmanager
    def writer(self, key: str, *, media_type: str) -> Iterator[ObjectWriter]:
        with super().writer(key, media_type=media_type) as writer:
            yield writer
        self._then()


class FailingListing(InMemoryObjectStore):
    """A service whose buckets can neither be listed nor asked."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def other_bucket(self, name: str) -> "FailingListing":
        del name
        return self

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredObject]:
        del prefix, after
        raise self._error

    def head(self, key: str, *, version_id: str | None = None) -> StoredObject:
        del key, version_id
        raise self._error
