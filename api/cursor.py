"""Opaque cursors: where a listing goes on."""

import base64
import binascii
from uuid import UUID

_MAX_INDEX = 2**31 - 1  # what the database counts pages with


class CursorError(Exception):
    """The cursor was not made by this API, or not for this listing."""


def encode_id(last_id: UUID) -> str:
    """Return the cursor of a page of rows that ends with ``last_id``."""
    return base64.urlsafe_b64encode(last_id.bytes).rstrip(b"=").decode()


def decode_id(cursor: str) -> UUID:
    """Return the id that a page of rows ended with.

    Raises:
        CursorError: the text is no cursor of ids.
    """
    try:
        return UUID(bytes=_decode(cursor))
    except ValueError as error:
        raise CursorError(cursor) from error


def encode_index(last_index: int) -> str:
    """Return the cursor of a page of rows that ends with ``last_index``."""
    return base64.urlsafe_b64encode(str(last_index).encode()).rstrip(b"=").decode()


def decode_index(cursor: str) -> int:
    """Return the index that a page of rows ended with.

    Raises:
        CursorError: the text is no cursor of indexes.
    """
    digits = _decode(cursor)
    if not digits.isdigit() or len(digits) > len(str(_MAX_INDEX)) or int(digits) > _MAX_INDEX:
        raise CursorError(cursor)
    return int(digits)


def _decode(cursor: str) -> bytes:
    padding = "=" * (-len(cursor) % 4)
    try:
        return base64.b64decode(cursor + padding, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise CursorError(cursor) from error
