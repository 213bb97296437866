"""Amazon S3: records in a queue, the same wrapped by SNS, and events of EventBridge."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from api.s3_events.event import (
    ObjectEvent,
    etag,
    mapping,
    optional_text,
    size,
    text,
    version,
)
from api.s3_events.records import read_record

_TEST_EVENT = "s3:TestEvent"
_CREATED = "Object Created"


def read(record: Mapping[str, Any]) -> ObjectEvent | None:
    """Return what a record says; its key is encoded as a form's field is, with `+` for a space."""
    return read_record(record, decode_key=unquote_plus)


def is_test(message: Mapping[str, Any]) -> bool:
    """Say whether this is what S3 sends once, when notifications are set up: it has no records."""
    return message.get("Event") == _TEST_EVENT


def is_wrapped(message: Mapping[str, Any]) -> bool:
    """Say whether SNS has put a message into one of its own."""
    return message.get("Type") == "Notification" and "Message" in message


def unwrap(message: Mapping[str, Any]) -> str:
    """Return what SNS has wrapped."""
    return text(message["Message"], "Message")


def is_of_event_bridge(message: Mapping[str, Any]) -> bool:
    """Say whether this is an event of EventBridge."""
    return "detail-type" in message


def read_event_bridge(message: Mapping[str, Any]) -> ObjectEvent | None:
    """Return what an event of EventBridge says; its key is as it is, and nothing to decode."""
    if message["detail-type"] != _CREATED or message.get("source") != "aws.s3":
        return None
    detail = mapping(message.get("detail"), "detail")
    bucket = mapping(detail.get("bucket"), "detail.bucket")
    found = mapping(detail.get("object"), "detail.object")
    return ObjectEvent(
        bucket=text(bucket.get("name"), "detail.bucket.name"),
        key=text(found.get("key"), "detail.object.key"),
        version_id=version(found.get("version-id")),
        etag=etag(found.get("etag")),
        size_bytes=size(found.get("size")),
        sequencer=optional_text(found.get("sequencer")),
    )
