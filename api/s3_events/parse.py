"""What a message says, whoever sent it: the form of the message tells the sender."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from api.s3_events import aws, ceph, minio, seaweedfs
from api.s3_events.event import ObjectEvent, UnreadableEventError, mapping, optional_text

_READERS: Mapping[str | None, Callable[[Mapping[str, Any]], ObjectEvent | None]] = {
    minio.SOURCE: minio.read,
    ceph.SOURCE: ceph.read,
}


def parse(body: bytes | str) -> Sequence[ObjectEvent]:
    """Return the new objects that a message tells of; none where it is about other things.

    Raises:
        UnreadableEventError: the message is of no sender that is known.
    """
    message = _json(body)
    if aws.is_wrapped(message):
        message = _json(aws.unwrap(message))
    return [event for event in _read(message) if event is not None]


def _read(message: Mapping[str, Any]) -> Sequence[ObjectEvent | None]:
    if isinstance(message.get("Records"), list):
        return [_read_record(mapping(each, "a record")) for each in message["Records"]]
    if aws.is_test(message):
        return []
    if aws.is_of_event_bridge(message):
        return [aws.read_event_bridge(message)]
    if seaweedfs.is_of_seaweedfs(message):
        return [seaweedfs.read(message)]
    raise UnreadableEventError("the message has the form of no sender that is known")


def _read_record(record: Mapping[str, Any]) -> ObjectEvent | None:
    read = _READERS.get(optional_text(record.get("eventSource")), aws.read)
    return read(record)


def _json(body: bytes | str) -> Mapping[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableEventError("the message is not JSON") from error
    return mapping(message, "the message")
