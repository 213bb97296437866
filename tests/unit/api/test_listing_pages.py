"""Pages of what a batch is filled from, and going on behind any of their objects."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from api.listing_errors import ListingFailedError
from api.listing_pages import Candidate, ListingPlan, Page, open_manifest, pages_of
from api.object_manifest import EntryRules
from api.place_settings import AllowedSource
from storage.errors import BucketNotFoundError, StorageError
from storage.memory import InMemoryObjectStore
from tests.support.stores import FailingListing

KEYS = ["in/", "in/a b+c%.pdf", "in/empty.pdf", "in/folder/", "in/folder/文\n書.pdf", "in/z/"]
RULES = EntryRules(allowed=(AllowedSource(bucket="scans", prefix="in/"),), tenant="t", options={})
PREFIX = {"kind": "prefix", "bucket": "scans", "prefix": "in/"}
MANIFEST = {
    "kind": "manifest",
    "bucket": "scans",
    "key": "in/m.csv",
    "version_id": None,
    "format": "csv",
}
MAX_MANIFEST_BYTES = 2**20


@pytest.fixture
def store() -> InMemoryObjectStore:
    store = InMemoryObjectStore()
    scans = store.other_bucket("scans")
    for key in KEYS:
        body = b"" if key.endswith("/") or "empty" in key else b"x" * len(key)
        scans.put(key, body, media_type="x")
    scans.put("out/b.pdf", b"x", media_type="x")
    return store


def pages(
    store: InMemoryObjectStore,
    source: dict[str, Any],
    *,
    cursor: str | None = None,
    page_objects: int = 2,
) -> list[Page]:
    manifest = open_manifest(store, source, max_bytes=MAX_MANIFEST_BYTES)
    plan = ListingPlan(source, manifest, RULES, page_objects)
    with ThreadPoolExecutor(2) as executor:
        return list(pages_of(plan, store, executor, cursor=cursor))


def candidates(found: list[Page]) -> list[Candidate]:
    return [candidate for page in found for candidate in page.candidates]


def keys(found: list[Page]) -> list[str]:
    return [candidate.source.address.key for candidate in candidates(found)]


def named(*names: str) -> dict[str, Any]:
    plain = {"version_id": None, "external_id": None, "metadata": None, "options": {}}
    return {
        "kind": "objects",
        "objects": [{"bucket": "scans", "key": name, **plain} for name in names],
    }


def test_all_under_a_prefix_but_folders_is_found(store: InMemoryObjectStore) -> None:
    found = pages(store, PREFIX)

    assert keys(found) == ["in/a b+c%.pdf", "in/empty.pdf", "in/folder/文\n書.pdf"]
    assert [candidate.source.size_bytes for candidate in candidates(found)] == [13, 0, 17]
    skipped = sum(page.skipped for page in found)
    assert skipped + sum(candidate.skipped for candidate in candidates(found)) == 3


def test_a_key_that_leads_out_of_the_prefix_is_left_out(store: InMemoryObjectStore) -> None:
    scans = store.other_bucket("scans")
    for key in ("in/../out/b.pdf", "in/./a.pdf", "in/..pdf"):
        scans.put(key, b"x", media_type="x")

    found = keys(pages(store, PREFIX))

    assert "in/..pdf" in found
    assert not {"in/../out/b.pdf", "in/./a.pdf"} & set(found)


@pytest.mark.parametrize("page_objects", [1, 2, 3, 100])
@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_prefix_goes_on_behind_any_of_its_objects(
    store: InMemoryObjectStore, page_objects: int, done: int
) -> None:
    all_found = pages(store, PREFIX, page_objects=page_objects)

    rest = pages(
        store, PREFIX, page_objects=page_objects, cursor=candidates(all_found)[done].cursor
    )

    assert keys(rest) == keys(all_found)[done + 1 :]


def test_a_cursor_is_plain_text_whatever_a_key_has(store: InMemoryObjectStore) -> None:
    cursors = [candidate.cursor for candidate in candidates(pages(store, PREFIX))]

    assert all(cursor.isascii() and cursor.isprintable() for cursor in cursors)


def test_objects_by_name_are_looked_at(store: InMemoryObjectStore) -> None:
    found = candidates(pages(store, named("in/empty.pdf", "in/none.pdf", "in/a b+c%.pdf")))

    assert [bool(candidate.source.etag) for candidate in found] == [True, False, True]
    assert [candidate.source.size_bytes for candidate in found] == [0, 0, 13]


def test_objects_by_name_go_on_behind_any_of_them(store: InMemoryObjectStore) -> None:
    source = named("in/1", "in/2", "in/3")
    second = candidates(pages(store, source))[1]

    assert keys(pages(store, source, cursor=second.cursor)) == ["in/3"]


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "prefix", "bucket": "scans", "prefix": ""},
        {"kind": "prefix", "bucket": "scans", "prefix": "in"},
        {"kind": "prefix", "bucket": "other", "prefix": "in/"},
        named("in/a b+c%.pdf", "out/b.pdf"),
    ],
)
def test_what_the_operator_does_not_allow_any_more_is_not_listed(
    store: InMemoryObjectStore, source: dict[str, Any]
) -> None:
    with pytest.raises(ListingFailedError) as raised:
        pages(store, source)

    assert raised.value.code == "source_not_allowed"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BucketNotFoundError("x"), "bucket_not_found"),
        (StorageError("AccessDenied"), "listing_refused"),
    ],
)
def test_a_prefix_that_is_refused_is_named(error: StorageError, code: str) -> None:
    with pytest.raises(ListingFailedError) as raised:
        pages(FailingListing(error), PREFIX)

    assert raised.value.code == code


def test_a_manifest_that_is_not_there_is_named(store: InMemoryObjectStore) -> None:
    with pytest.raises(ListingFailedError) as raised:
        open_manifest(store, MANIFEST, max_bytes=MAX_MANIFEST_BYTES)

    assert raised.value.code == "source_not_found"


def test_a_manifest_above_the_limit_is_not_read(store: InMemoryObjectStore) -> None:
    store.other_bucket("scans").put("in/m.csv", b"x" * 11, media_type="text/csv")

    with pytest.raises(ListingFailedError) as raised:
        open_manifest(store, MANIFEST, max_bytes=10)

    assert raised.value.code == "invalid_manifest"
    assert "11 bytes" in (raised.value.detail or "")
    assert open_manifest(store, MANIFEST, max_bytes=11) is not None
