"""A stored result, read part by part while it is sent."""

from collections.abc import AsyncIterator, Iterator

from api.services import Services
from storage.object_store import ObjectStore

# Small parts: a thousand slow readers must fit into memory.
PART_BYTES = 256 * 2**10


def open_result(store: ObjectStore, key: str) -> tuple[int, Iterator[bytes]]:
    """Start reading, so that an object that is missing is an error and not half an answer."""
    size_bytes = store.head(key).size_bytes
    return size_bytes, store.stream(key, part_bytes=PART_BYTES)


async def read_parts(parts: Iterator[bytes], services: Services) -> AsyncIterator[bytes]:
    """Read on in the threads for storage."""
    while part := await services.in_storage_thread(next, parts, b""):
        yield part
