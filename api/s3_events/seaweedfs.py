"""The webhook of SeaweedFS: its filer tells of every change below `/buckets`, in words of its own.

An object that is written over is an `update`; so is one whose tags change, and its etag shows that
nothing is new. A rename is told as the path that was left, and where the entry went.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from api.s3_events.event import ObjectEvent, mapping, optional_text, size, text

_ROOT = "/buckets/"
_WRITES = frozenset({"create", "update", "rename"})
_ETAG = "Seaweed-X-Amz-ETag"


def is_of_seaweedfs(message: Mapping[str, Any]) -> bool:
    """Say whether this is what a filer sends."""
    return "event_type" in message and "message" in message


def read(message: Mapping[str, Any]) -> ObjectEvent | None:
    """Return what a filer says of a new object; None: it is about something else.

    Folders are entries of their own, and so are the parts of uploads, which lie in `.uploads`
    until they are put together. Names with a dot at the beginning of a bucket's name or of its
    first folder belong to the server.

    Raises:
        UnreadableEventError: it names no entry.
    """
    if optional_text(message["event_type"]) not in _WRITES:
        return None
    change = mapping(message["message"], "message")
    if not change.get("new_entry"):
        return None
    entry = mapping(change["new_entry"], "message.new_entry")
    folder = optional_text(change.get("new_parent_path"))
    path = (
        f"{folder.rstrip('/')}/{text(entry.get('name'), 'message.new_entry.name')}"
        if folder
        else text(message.get("key"), "key")
    )
    bucket, slash, key = path.removeprefix(_ROOT).partition("/")
    is_object = path.startswith(_ROOT) and slash and key and not entry.get("is_directory")
    if not is_object or bucket.startswith(".") or key.startswith((".uploads/", ".versions/")):
        return None
    attributes = entry.get("attributes")
    return ObjectEvent(
        bucket=bucket,
        key=key,
        etag=_etag(entry.get("extended")),
        size_bytes=size(attributes.get("file_size")) if isinstance(attributes, dict) else None,
    )


def _etag(extended: object) -> str | None:
    """Return the etag, which Go's JSON encodes as it does all bytes."""
    encoded = extended.get(_ETAG) if isinstance(extended, dict) else None
    if not isinstance(encoded, str):
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode("ascii").strip('"') or None
    except (binascii.Error, UnicodeDecodeError):
        return None
