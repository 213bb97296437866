"""What may become of stored pages that other documents are to be served from."""

from collections.abc import Callable, Sequence
from typing import Final

import pytest

from storage.errors import ObjectCorruptError, StorageError
from storage.keys import PAGES_MEDIA_TYPE
from tests.support.stores import RefusingObjectStore

Damage = Callable[[RefusingObjectStore, Sequence[str]], None]

_MEMBER: Final = b"\x1f\x8b\x08"
_HEADER_BYTES: Final = 10


def lose(store: RefusingObjectStore, keys: Sequence[str]) -> None:
    store.delete(keys)


def overwrite(store: RefusingObjectStore, keys: Sequence[str]) -> None:
    """Put something else of the same length."""
    for key in set(keys):
        store.put(key, bytes(len(store.get(key))), media_type=PAGES_MEDIA_TYPE)


def flip(store: RefusingObjectStore, keys: Sequence[str]) -> None:
    """Change a bit of the packed bytes of every page."""
    for key in set(keys):
        body = bytearray(store.get(key))
        start = body.find(_MEMBER)
        while start >= 0:
            body[start + _HEADER_BYTES] ^= 0x10
            start = body.find(_MEMBER, start + _HEADER_BYTES)
        store.put(key, bytes(body), media_type=PAGES_MEDIA_TYPE)


def archive(store: RefusingObjectStore, keys: Sequence[str]) -> None:
    """Refuse the objects, as a store does that has moved them to an archive class."""
    store.refused |= dict.fromkeys(keys, StorageError("InvalidObjectState"))


def corrupt(store: RefusingObjectStore, keys: Sequence[str]) -> None:
    """Let the store find that they are not what was put."""
    store.refused |= dict.fromkeys(keys, ObjectCorruptError("checksum"))


DAMAGES: Final = [
    pytest.param(damage, id=damage.__name__) for damage in (lose, overwrite, flip, archive, corrupt)
]
