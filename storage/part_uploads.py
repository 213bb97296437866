"""Objects that somebody else sends in parts, at addresses which need no account.

An object of this kind is there only when it was put together from its parts; from then on nobody
can change it by the addresses, which are of its parts alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

MAX_PARTS = 10_000
MIN_PART_BYTES = 5 * 2**20
"""What S3 asks of every part but the last."""
MAX_PART_BYTES = 5 * 2**30


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One part that has arrived; ``number`` counts from 1, ``etag`` is without quotes."""

    number: int
    size_bytes: int
    etag: str


class PartUploads(Protocol):
    """The objects of a bucket that are sent in parts; errors are those of ``ObjectStore``."""

    def begin(self, key: str) -> str:
        """Return an id under which parts of this object are taken."""

    def presign(
        self, key: str, parts_id: str, *, number: int, size_bytes: int, expires_s: int
    ) -> str:
        """Return an address at which anybody can PUT one part, of this size and no other.

        It is good for ``expires_s`` seconds, and for as long as the object is not put together.
        Nobody is asked for it, so it is not known whether there is such an id.
        """

    def list(self, key: str, parts_id: str, *, after: int = 0) -> Iterator[StoredPart]:
        """Yield the parts that are there, in order, those after number ``after`` only.

        Of several that were sent under one number a store may have all; the latest comes last, as
        far as the store's clock tells them apart.

        Raises:
            ObjectNotFoundError: there is no such id: its object was put together, or given up.
        """

    def finish(self, key: str, parts_id: str, parts: Iterable[StoredPart]) -> None:
        """Put the object together of these parts, replacing what is there; others are dropped.

        Done again, it changes nothing: it is an error, or none.

        Raises:
            ObjectNotFoundError: there is no such id.
            ObjectChangedError: one of the parts is not there as it is described.
        """

    def abort(self, key: str, parts_id: str | None) -> None:
        """Remove what was sent of an object; None: under any id. What is gone counts as removed.

        A part that is being sent meanwhile may be left: only aborting again finds it.
        """
