"""Objects that are handed on as they are stored."""

from collections.abc import AsyncIterator, Iterator

from api.services import Services
from storage.object_store import ObjectStore

# Small parts: a thousand slow readers must fit into memory.
PART_BYTES = 256 * 2**10


def open_object(store: ObjectStore, key: str) -> tuple[int, Iterator[bytes]]:
    """Start reading, so that an object that is missing is an error and not half an answer.

    Returns:
        Its size in bytes, and its parts in order.
    """
    size_bytes = store.head(key).size_bytes
    return size_bytes, store.stream(key, part_bytes=PART_BYTES)


async def parts_of(parts: Iterator[bytes], services: Services) -> AsyncIterator[bytes]:
    """Yield the parts of an object, each read in a thread for storage."""
    while part := await services.in_storage_thread(next, parts, b""):
        yield part
