"""Which objects of a batch are one."""

import pytest

from api.object_fingerprint import fingerprint_of
from storage.source_object import SourceAddress, SourceObject, unseen


def seen(key: str, etag: str, *, version_id: str | None = None) -> SourceObject:
    return SourceObject(SourceAddress("scans", key, version_id), "v1", etag, 8)


def is_known(source: SourceObject, *, noted: SourceObject) -> bool:
    print_of_it, value = fingerprint_of(source), fingerprint_of(noted).value
    return value == print_of_it.value or print_of_it.same_from <= value <= print_of_it.same_to


NAMED = unseen(SourceAddress("scans", "in/a"))
OLDER = unseen(SourceAddress("scans", "in/a", "v0"))


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (seen("in/a", "1"), seen("in/a", "1")),
        (seen("in/a", "1"), seen("in/a", "1", version_id="v1")),
        (seen("in/a", "1", version_id="v1"), seen("in/a", "1")),
        (NAMED, seen("in/a", "1")),
        (seen("in/a", "1"), NAMED),
        (NAMED, NAMED),
        (OLDER, seen("in/a", "1", version_id="v0")),
    ],
)
def test_an_object_is_known_however_it_is_named(first: SourceObject, again: SourceObject) -> None:
    assert is_known(again, noted=first)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (seen("in/a", "1"), seen("in/a", "2")),
        (seen("in/a", "1"), seen("in/b", "1")),
        (NAMED, seen("in/b", "1")),
        (seen("in/b", "1"), NAMED),
        (NAMED, seen("in/a", "1", version_id="v0")),
        (seen("in/a", "1"), OLDER),
        (NAMED, OLDER),
    ],
)
def test_another_object_is_not_known(first: SourceObject, other: SourceObject) -> None:
    assert not is_known(other, noted=first)
