"""Ceph's RADOS gateway: records as Amazon's, but with the key as it is, and the size as a text.

The start of a multipart upload is a `Post` too. Nothing tells it from the upload of a form; the
object is not there yet, and whoever looks at it finds that out.
"""

from collections.abc import Mapping
from typing import Any

from api.s3_events.event import ObjectEvent
from api.s3_events.records import read_record

SOURCE = "ceph:s3"


def read(record: Mapping[str, Any]) -> ObjectEvent | None:
    """Return what a record says; there is nothing to decode in its key."""
    return read_record(record, decode_key=_as_it_is)


def _as_it_is(key: str) -> str:
    return key
