"""The form that Amazon gave its events, and that MinIO and Ceph took over: a list of records."""

from collections.abc import Callable, Mapping
from typing import Any

from api.s3_events.event import (
    ObjectEvent,
    etag,
    mapping,
    optional_text,
    says_created,
    size,
    text,
    version,
)


def read_record(
    record: Mapping[str, Any], *, decode_key: Callable[[str], str]
) -> ObjectEvent | None:
    """Return what a record says of a new object; None: it is about something else.

    Fields that are not known are left alone: senders add some with every minor version.

    Raises:
        UnreadableEventError: the record names no object.
    """
    if not says_created(text(record.get("eventName"), "eventName")):
        return None
    about = mapping(record.get("s3"), "s3")
    bucket = mapping(about.get("bucket"), "s3.bucket")
    found = mapping(about.get("object"), "s3.object")
    return ObjectEvent(
        bucket=text(bucket.get("name"), "s3.bucket.name"),
        key=decode_key(text(found.get("key"), "s3.object.key")),
        version_id=version(found.get("versionId")),
        etag=etag(found.get("eTag")),
        size_bytes=size(found.get("size")),
        sequencer=optional_text(found.get("sequencer")),
    )
