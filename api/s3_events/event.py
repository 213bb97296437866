"""One thing that a store said, and how its fields are read whoever said it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CREATED = frozenset({"Put", "Post", "Copy", "CompleteMultipartUpload"})
"""The ends of event names that say that there is a new object. Others begin with `ObjectCreated`
too: MinIO's tags, retention and legal holds."""

_FAMILY = "ObjectCreated:"
_PREFIX = "s3:"
_NO_VERSION = frozenset({"", "null"})


class UnreadableEventError(ValueError):
    """A message is of no sender that is known; the text says what is missing, never a value."""


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An object that a store says is new.

    Attributes:
        bucket: its name.
        key: as it is, not encoded.
        version_id: None where the bucket keeps no versions, or the sender does not say.
        etag: without quotes; None where the sender does not say.
        size_bytes: likewise.
        sequencer: orders the events of one key; None where the sender has none.
    """

    bucket: str
    key: str
    version_id: str | None = None
    etag: str | None = None
    size_bytes: int | None = None
    sequencer: str | None = None


def says_created(name: str) -> bool:
    """Say whether an event of this name is about a new object; `s3:` before it means nothing."""
    family, _, kind = name.removeprefix(_PREFIX).rpartition(":")
    return f"{family}:" == _FAMILY and kind in CREATED


def is_later(sequencer: str, than: str) -> bool:
    """Compare two sequencers of one key.

    Source:
        Amazon's answer about duplicate messages: right-pad the shorter one with zeros, then
        compare as text. Hexadecimal, in upper case as in lower.
    """
    length = max(len(sequencer), len(than))
    return sequencer.upper().ljust(length, "0") > than.upper().ljust(length, "0")


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return a part of a message that is an object.

    Raises:
        UnreadableEventError: it is none.
    """
    if not isinstance(value, dict):
        raise UnreadableEventError(f"{what} is missing, or no object")
    return value


def text(value: object, what: str) -> str:
    """Return a part of a message that is a text and not empty.

    Raises:
        UnreadableEventError: it is none.
    """
    if not isinstance(value, str) or not value:
        raise UnreadableEventError(f"{what} is missing, or no text")
    return value


def optional_text(value: object) -> str | None:
    """Return a part of a message that may be missing; an empty text is as good as none."""
    return value if isinstance(value, str) and value else None


def version(value: object) -> str | None:
    """Return a version that can be asked for; `null` is the one of a bucket without any."""
    found = optional_text(value)
    return None if found in _NO_VERSION else found


def etag(value: object) -> str | None:
    """Return an etag without the quotes that some senders leave on it."""
    found = optional_text(value)
    return found and (found.strip('"') or None)


def size(value: object) -> int | None:
    """Return a size in bytes, whether it comes as a number or as a text; None: it says nothing."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    # No object is larger, and of thousands of digits Python makes no number.
    if isinstance(value, str) and not re.fullmatch("[0-9]{1,19}", value):
        return None
    found = int(value)
    return found if found >= 0 else None
