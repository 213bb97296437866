"""Objects of users, in whatever bucket, that become the source of a document.

What is accepted is pinned: one version where the bucket keeps versions, one etag and length
everywhere. Whoever reads it later gets these bytes or an error, never others.
``store`` is any bucket of the service.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from storage.errors import (
    BucketNotFoundError,
    ObjectChangedError,
    ObjectNotFoundError,
    SourceNotFoundError,
    SourceRefusedError,
    StorageError,
    StorageUnavailableError,
)
from storage.object_store import PART_BYTES, ObjectStore, StoredObject

KIND = "object"
MAX_KEY_BYTES = 1_024  # of S3; the rows of the ledger are made for it
_NO_VERSION = "null"  # what S3 calls the version of an object from before its bucket kept any


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """Where an object lies; ``version_id`` None: the latest."""

    bucket: str
    key: str
    version_id: str | None = None


@dataclass(frozen=True, slots=True)
class SourceObject:
    """An object as it was when it was accepted.

    Attributes:
        address: as it was asked for.
        version_id: which it is; None where the bucket keeps no versions.
        etag: without quotes.
        size_bytes: of the object.
    """

    address: SourceAddress
    version_id: str | None
    etag: str
    size_bytes: int

    @property
    def is_folder(self) -> bool:
        """Whether it is what programs put where a folder begins, and no file."""
        return self.size_bytes == 0 and self.address.key.endswith("/")

    def to_row(self) -> dict[str, Any]:
        """Return it as a document's row keeps it."""
        return {
            "kind": KIND,
            "bucket": self.address.bucket,
            "key": self.address.key,
            "requested_version_id": self.address.version_id,
            "version_id": self.version_id,
            "etag": self.etag,
            "size_bytes": self.size_bytes,
        }


def is_usable_name(text: str) -> bool:
    """Say whether a bucket, key or version of this name can be asked for and written down.

    Neither XML nor Postgres has NUL.
    """
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        return False
    return size_bytes <= MAX_KEY_BYTES and "\0" not in text


def from_row(row: dict[str, Any]) -> SourceObject | None:
    """Return the object of a document's row; None: its bytes came with the request."""
    if row["kind"] != KIND:
        return None
    address = SourceAddress(row["bucket"], row["key"], row["requested_version_id"])
    return SourceObject(address, row["version_id"], row["etag"], row["size_bytes"])


def describe(store: ObjectStore, address: SourceAddress) -> SourceObject:
    """Ask the store what stands at an address now.

    Raises:
        SourceNotFoundError: nothing does.
        SourceRefusedError: the store does not say.
        StorageUnavailableError: the store is away.
    """
    with _object_of_a_user(address):
        found = store.other_bucket(address.bucket).head(address.key, version_id=address.version_id)
    version_id = None if found.version_id == _NO_VERSION else found.version_id
    return SourceObject(address, version_id, found.etag, found.size_bytes)


def unseen(address: SourceAddress) -> SourceObject:
    """Return an object that nobody has found: what is there is asked when it is to be read."""
    return SourceObject(address, None, "", 0)


def list_prefix(
    store: ObjectStore, bucket: str, prefix: str, *, after: str = ""
) -> Iterator[StoredObject]:
    """Yield what lies under a prefix in the order of the store, those after key ``after`` only.

    Raises:
        SourceNotFoundError: there is no such bucket.
        SourceRefusedError: the store does not list it.
        StorageUnavailableError: the store is away.
    """
    with _object_of_a_user(SourceAddress(bucket, prefix)):
        yield from store.other_bucket(bucket).list(prefix, after=after)


def stream(
    store: ObjectStore, source: SourceObject, *, part_bytes: int = PART_BYTES, start: int = 0
) -> Iterator[bytes]:
    """Yield the bytes that were accepted, part by part, from byte ``start`` on.

    Raises:
        SourceNotFoundError: they are gone.
        ObjectChangedError: others stand in their place.
        SourceRefusedError: the store does not hand them out any more.
        StorageUnavailableError: the store is away.
    """
    address = source.address
    size_bytes = start
    with _object_of_a_user(address):
        for part in store.other_bucket(address.bucket).stream(
            address.key,
            part_bytes=part_bytes,
            version_id=source.version_id,
            etag=source.etag,
            start=start,
        ):
            size_bytes += len(part)
            yield part
    if size_bytes != source.size_bytes:
        raise ObjectChangedError(f"{size_bytes} bytes of {source.size_bytes} in {address.bucket}")


@contextmanager
def _object_of_a_user(address: SourceAddress) -> Iterator[None]:
    """Raise what a store says as what it means for an object that is not ours.

    Raises:
        SourceNotFoundError: it is not there, and no key of ours is wrong.
        ObjectChangedError: as the store says it.
        StorageUnavailableError: likewise.
        SourceRefusedError: any other refusal.
    """
    try:
        yield
    except BucketNotFoundError as error:
        raise SourceNotFoundError(f"no such bucket as {address.bucket}") from error
    except ObjectNotFoundError as error:
        raise SourceNotFoundError(f"no such object in {address.bucket}") from error
    except ObjectChangedError:
        raise
    except StorageUnavailableError:
        # Without its cause: a task fails with it, Flower shows that, and the key of an object is
        # its owner's file name.
        raise StorageUnavailableError(f"{address.bucket} cannot be read at the moment") from None
    except StorageError as error:
        raise SourceRefusedError(f"an object in {address.bucket} is refused") from error
