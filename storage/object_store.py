"""What the rest of the program may ask of an object store."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from storage.part_uploads import PartUploads

PART_BYTES = 8 * 2**20  # S3 takes parts from 5 MiB; 8 is what boto3 itself uses


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object as a listing or a HEAD describes it; ``etag`` is without quotes.

    ``version_id`` is None in a listing, and where the bucket keeps no versions.
    """

    key: str
    size_bytes: int
    etag: str
    version_id: str | None = None


class ObjectWriter(Protocol):
    """An object in the making; it exists only once its ``with`` block has ended well."""

    def write(self, part: bytes) -> None:
        """Take the next bytes, of any length."""


class ObjectStore(Protocol):
    """A bucket. Every method raises ``StorageError`` or one of its subclasses."""

    def put(self, key: str, body: bytes, *, media_type: str) -> None:
        """Store ``body`` whole, replacing what is there."""

    def writer(self, key: str, *, media_type: str) -> AbstractContextManager[ObjectWriter]:
        """Open an object for streaming; leaving the block by an exception leaves no object."""

    def get(self, key: str) -> bytes:
        """Return a whole object; for those known to be small."""

    def read_range(self, key: str, *, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` to ``stop``, half-open; fewer where the object ends.

        Raises:
            ValueError: ``start`` is negative, or ``stop`` lies before it.
        """

    def stream(
        self,
        key: str,
        *,
        part_bytes: int = PART_BYTES,
        version_id: str | None = None,
        etag: str | None = None,
        start: int = 0,
    ) -> Iterator[bytes]:
        """Yield an object part by part; a missing object raises before the first part.

        Args:
            key: of the object.
            part_bytes: of each part but the last.
            version_id: of a bucket that keeps versions; None: the latest.
            etag: which it must have; None: any.
            start: byte to begin with; from the end of the object on, nothing is yielded.

        Raises:
            ObjectChangedError: it has another etag; raised before the first part.
        """

    def head(self, key: str, *, version_id: str | None = None) -> StoredObject:
        """Describe one object, or one version of it."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredObject]:
        """Yield the objects under ``prefix`` in key order, those after key ``after`` only."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, in batches; a key that is not there counts as deleted.

        An error says that some are still there; deleting all of them again is safe.
        """

    def presign_get(self, key: str, *, expires_s: int) -> str:
        """Return an address at which anybody can GET the object for ``expires_s`` seconds."""

    def presign_put(self, key: str, *, media_type: str, expires_s: int) -> str:
        """Return an address at which anybody can PUT the object for ``expires_s`` seconds."""

    @property
    def part_uploads(self) -> PartUploads:
        """Its objects that others send in parts."""

    def other_bucket(self, name: str) -> "ObjectStore":
        """Return another bucket of the same service, for the same account."""

    def check(self) -> None:
        """Ask the store whether the bucket is there and may be used."""


def check_range(start: int, stop: int) -> None:
    """Refuse a range that is none, the same way in every store.

    Raises:
        ValueError: ``start`` is negative, or ``stop`` lies before it.
    """
    if not 0 <= start <= stop:
        raise ValueError(f"a range has 0 <= start <= stop, got {start} and {stop}")
