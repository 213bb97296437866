"""What every object store promises, asked of the one in memory and of a real S3 server."""

import pytest

from storage.errors import ObjectChangedError, ObjectNotFoundError
from storage.object_store import PART_BYTES, ObjectStore
from tests.support.broken_writes import BrokenOffError, break_off

MEDIA_TYPE = "application/octet-stream"
MISSING = "documents/none"
HOSTILE_KEYS = [
    "documents/a b",
    "documents/a+b",
    "documents/a%20b",
    "documents/a%2Fb",
    "documents/grün/文書",
    "documents/a?b=c&d",
    "documents/#a",
    "documents/'a\"<b>",
    "documents/a~b*(c)!",
]


def put(store: ObjectStore, key: str, body: bytes = b"body") -> None:
    store.put(key, body, media_type=MEDIA_TYPE)


def keys_under(store: ObjectStore, prefix: str, *, after: str = "") -> list[str]:
    return [found.key for found in store.list(prefix, after=after)]


def test_what_was_put_is_got(store: ObjectStore) -> None:
    put(store, "documents/1", b"\x00first\xff")

    assert store.get("documents/1") == b"\x00first\xff"


def test_a_second_put_replaces_the_first(store: ObjectStore) -> None:
    put(store, "documents/1", b"a longer first body")
    put(store, "documents/1", b"second")

    assert store.get("documents/1") == b"second"


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_a_key_with_odd_characters_is_kept_as_it_is(store: ObjectStore, key: str) -> None:
    put(store, key, key.encode())

    assert store.get(key) == key.encode()
    assert store.head(key).key == key
    assert keys_under(store, "documents/") == [key]

    store.delete([key])

    assert keys_under(store, "") == []


def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    put(store, "documents/empty", b"")

    assert store.get("documents/empty") == b""
    assert store.head("documents/empty").size_bytes == 0
    assert list(store.stream("documents/empty")) == []
    assert store.read_range("documents/empty", start=0, stop=0) == b""


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [(0, 3, b"012"), (3, 7, b"3456"), (9, 10, b"9"), (5, 100, b"56789"), (4, 4, b"")],
)
def test_a_range_is_half_open_and_ends_with_the_object(
    store: ObjectStore, start: int, stop: int, expected: bytes
) -> None:
    put(store, "documents/1", b"0123456789")

    assert store.read_range("documents/1", start=start, stop=stop) == expected


def test_a_range_past_the_end_is_empty(store: ObjectStore) -> None:
    put(store, "documents/1", b"0123456789")

    assert store.read_range("documents/1", start=10, stop=12) == b""
    assert store.read_range("documents/1", start=50, stop=60) == b""


@pytest.mark.parametrize(
    ("start", "stop"), [(-3, 2), (5, 4)], ids=["a negative start", "a stop before the start"]
)
def test_a_range_that_is_none_is_the_callers_mistake(
    store: ObjectStore, start: int, stop: int
) -> None:
    put(store, "documents/1", b"0123456789")

    with pytest.raises(ValueError, match="range"):
        store.read_range("documents/1", start=start, stop=stop)


def test_a_stream_yields_the_object_in_parts(store: ObjectStore) -> None:
    put(store, "documents/1", b"0123456789")

    parts = list(store.stream("documents/1", part_bytes=4))

    assert parts == [b"0123", b"4567", b"89"]


def test_head_gives_size_and_an_etag_that_changes_with_the_content(store: ObjectStore) -> None:
    put(store, "documents/1", b"first")
    first = store.head("documents/1")
    put(store, "documents/1", b"other")
    second = store.head("documents/1")

    assert first.size_bytes == second.size_bytes == 5
    assert first.etag != second.etag
    assert '"' not in first.etag


def test_a_missing_object_is_not_found_by_get(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.get(MISSING)


def test_a_missing_object_is_not_found_by_head(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.head(MISSING)


def test_a_missing_object_is_not_found_by_a_range(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.read_range(MISSING, start=0, stop=4)


def test_a_missing_object_is_not_found_before_its_first_part(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.stream(MISSING)


@pytest.mark.parametrize("size", [0, 5, PART_BYTES, PART_BYTES + 1, 20 * 2**20])
def test_a_written_object_is_whole_whatever_its_size(store: ObjectStore, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    with store.writer("documents/1", media_type=MEDIA_TYPE) as writer:
        for start in range(0, size, 3_000_001):
            writer.write(body[start : start + 3_000_001])

    assert store.head("documents/1").size_bytes == size
    assert b"".join(store.stream("documents/1")) == body


def test_an_object_is_there_only_when_it_is_written_to_its_end(store: ObjectStore) -> None:
    with store.writer("documents/1", media_type=MEDIA_TYPE) as writer:
        writer.write(b"x" * (PART_BYTES + 1))
        before = keys_under(store, "")

    assert before == []
    assert keys_under(store, "") == ["documents/1"]


@pytest.mark.parametrize("size", [5, 2 * PART_BYTES + 1], ids=["small", "of several parts"])
def test_a_broken_off_writer_leaves_the_old_object(store: ObjectStore, size: int) -> None:
    put(store, "documents/1", b"old")

    with pytest.raises(BrokenOffError):
        break_off(store, "documents/1", size)

    assert store.get("documents/1") == b"old"
    assert keys_under(store, "") == ["documents/1"]


def test_a_listing_has_the_keys_under_a_prefix_in_order(store: ObjectStore) -> None:
    for key in ("b/2", "a/10", "a/9", "ab", "a/B", "c"):
        put(store, key, key.encode())

    found = list(store.list("a/"))

    assert [described.key for described in found] == ["a/10", "a/9", "a/B"]
    assert found[0] == store.head("a/10")


def test_a_listing_goes_on_after_a_key(store: ObjectStore) -> None:
    for key in ("a/1", "a/2", "a/3", "b/1"):
        put(store, key)

    assert keys_under(store, "a/", after="a/1") == ["a/2", "a/3"]
    assert keys_under(store, "a/", after="a/15") == ["a/2", "a/3"]
    assert keys_under(store, "a/", after="a/3") == []
    assert keys_under(store, "none/") == []


def test_more_keys_than_one_request_takes_are_listed_and_deleted(store: ObjectStore) -> None:
    keys = [f"documents/{number:04}" for number in range(1_010)]
    for key in [*keys, "kept"]:
        put(store, key, b"x")

    assert keys_under(store, "documents/") == keys
    assert keys_under(store, "documents/", after=keys[1_004]) == keys[1_005:]

    store.delete(iter(keys))

    assert keys_under(store, "") == ["kept"]


def test_a_key_that_is_not_there_counts_as_deleted(store: ObjectStore) -> None:
    put(store, "documents/1")

    store.delete([MISSING, "documents/1"])
    store.delete([])

    assert keys_under(store, "") == []


def test_a_store_in_order_passes_its_check(store: ObjectStore) -> None:
    store.check()


def test_a_stream_that_is_pinned_to_an_etag_is_of_that_object(store: ObjectStore) -> None:
    store.put("pinned", b"first", media_type=MEDIA_TYPE)

    parts = store.stream("pinned", etag=store.head("pinned").etag)

    assert b"".join(parts) == b"first"


def test_a_stream_that_is_pinned_to_an_etag_is_of_no_other_object(store: ObjectStore) -> None:
    store.put("pinned", b"first", media_type=MEDIA_TYPE)
    etag = store.head("pinned").etag
    store.put("pinned", b"second", media_type=MEDIA_TYPE)

    with pytest.raises(ObjectChangedError):
        store.stream("pinned", etag=etag)


def test_an_object_without_versions_says_none(store: ObjectStore) -> None:
    store.put("a", b"x", media_type=MEDIA_TYPE)

    assert store.head("a").version_id is None


@pytest.mark.parametrize(
    ("start", "expected"), [(0, b"0123456789"), (4, b"456789"), (9, b"9"), (10, b""), (50, b"")]
)
def test_a_stream_begins_where_it_is_told(store: ObjectStore, start: int, expected: bytes) -> None:
    put(store, "documents/1", b"0123456789")
    etag = store.head("documents/1").etag

    parts = list(store.stream("documents/1", part_bytes=4, etag=etag, start=start))

    assert b"".join(parts) == expected


# Of a store that keeps folders: their names sort otherwise than the keys below them.
NEIGHBORS = [
    "documents/a",
    "documents/a b",
    "documents/a!",
    "documents/a+b",
    "documents/a-b",
    "documents/a.b",
    "documents/a0/c",
    "documents/b/c/d",
    "documents/b/c0",
    "documents/b\nc",
    "documents/ü/c",
    "documents/文",
]


def test_a_listing_goes_on_behind_any_of_its_keys(store: ObjectStore) -> None:
    for key in NEIGHBORS:
        put(store, key)
    listed = keys_under(store, "documents/")

    rests = [keys_under(store, "documents/", after=key) for key in listed]

    assert sorted(listed) == sorted(NEIGHBORS)
    assert rests == [listed[place:] for place in range(1, len(listed) + 1)]
