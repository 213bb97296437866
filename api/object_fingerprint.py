"""What tells the objects of a batch apart, whatever names them and whenever."""

import hashlib

from db.batch_objects import Fingerprint
from storage.source_object import SourceObject

_HALF_BYTES = 16  # one for where an object lies, one for what is there


def fingerprint_of(source: SourceObject) -> Fingerprint:
    """Return the fingerprint of an object, as it was found or as nobody has seen it.

    The etag tells two contents of a key apart, and not the version: a listing names none, and one
    that is asked for is the same object as the latest, where it is that. A document whose object
    was not seen reads whatever is there when its turn comes, so that is this object, whatever its
    etag then is; and where an object is not seen any more, its batch has it already.
    """
    address = source.address
    place = _half(f"{address.bucket}\0{address.key}")
    unseen = place + _half(f"v{address.version_id or ''}")
    if source.etag:
        return Fingerprint(place + _half(f"e{source.etag}"), unseen, unseen)
    if address.version_id is not None:
        return Fingerprint(unseen, unseen, unseen)
    return Fingerprint(unseen, place + bytes(_HALF_BYTES), place + b"\xff" * _HALF_BYTES)


def _half(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:_HALF_BYTES]
