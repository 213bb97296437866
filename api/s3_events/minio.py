"""MinIO's webhook: records as Amazon's, names with `s3:` before them, slashes in keys escaped."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from api.s3_events.event import ObjectEvent
from api.s3_events.records import read_record

SOURCE = "minio:s3"


def read(record: Mapping[str, Any]) -> ObjectEvent | None:
    """Return what a record says; its key is encoded as a form's field is, slashes included."""
    return read_record(record, decode_key=unquote_plus)
