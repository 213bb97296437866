"""A write that does not come to its end."""

from storage.object_store import ObjectStore


class BrokenOffError(Exception):
    """What the writer's block was left by."""


def break_off(store: ObjectStore, key: str, size_bytes: int) -> None:
    """Write some bytes of an object and give up."""
    with store.writer(key, media_type="application/octet-stream") as writer:
        writer.write(b"x" * size_bytes)
        raise BrokenOffError
