"""Opaque cursors: where a listing goes on."""

import base64
import re
from uuid import UUID

_INDEX_BYTES = 4  # what the database counts pages with; the first bit is never set
# Exactly the texts that are cursors: base64 of so many bytes, whose last character has spare bits,
# and of an index the first character bits that it does not use.
ID_PATTERN = "^[A-Za-z0-9_-]{21}[AQgw]$"
INDEX_PATTERN = "^[A-Za-f][A-Za-z0-9_-]{4}[AQgw]$"
PLACE_PATTERN = "^[A-Za-z0-9_-]{2,8192}$"


class CursorError(Exception):
    """The cursor was not made by this API, or not for this listing."""


def encode_id(last_id: UUID) -> str:
    """Return the cursor of a page of rows that ends with ``last_id``."""
    return _encode(last_id.bytes)


def decode_id(cursor: str) -> UUID:
    """Return the id that a page of rows ended with.

    Raises:
        CursorError: the text is no cursor of ids.
    """
    return UUID(bytes=_decode(cursor, ID_PATTERN))


def encode_index(last_index: int) -> str:
    """Return the cursor of a page of rows that ends with ``last_index``."""
    return _encode(last_index.to_bytes(_INDEX_BYTES, "big"))


def decode_index(cursor: str) -> int:
    """Return the index that a page of rows ended with.

    Raises:
        CursorError: the text is no cursor of indexes.
    """
    return int.from_bytes(_decode(cursor, INDEX_PATTERN), "big")


def encode_place(place: str) -> str:
    """Return the cursor of a place in a listing of objects."""
    return _encode(place.encode())


def decode_place(cursor: str) -> str:
    """Return the place in a listing of objects.

    Raises:
        CursorError: the text is no cursor of places.
    """
    try:
        return _decode(cursor, PLACE_PATTERN).decode("ascii")
    except ValueError as error:  # of base64 too, whose last character may stand for nothing
        raise CursorError(cursor) from error


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(cursor: str, pattern: str) -> bytes:
    if not re.fullmatch(pattern, cursor):
        raise CursorError(cursor)
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
