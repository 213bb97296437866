"""What a batch is filled from, page by page, each page with the place where the next begins.

Whatever the source, a page is all of it that is in memory, and a listing that is broken off goes on
behind any of its objects.
"""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, unquote

from api.accept_source import require_allowed
from api.errors import ApiError
from api.listing_errors import ListingFailedError
from api.manifest_rows import RowFields
from api.object_manifest import CURSOR as MANIFEST_CURSOR
from api.object_manifest import EntryRules, NamedEntry, ReadSoFar, manifest_entries
from storage import source_object
from storage.errors import ObjectChangedError, SourceNotFoundError, SourceRefusedError
from storage.object_store import ObjectStore, StoredObject
from storage.source_object import SourceAddress, SourceObject, is_usable_name

LISTED_OBJECTS: Final = 1_000  # as many as a store lists at once
NAMED_OBJECTS: Final = 200  # each is asked for by a request of its own
LOOKS_AT_ONCE: Final = 8
# By the kind of the source; of objects how many are done, of a prefix the last key, quoted.
_CURSORS: Final = {
    "manifest": MANIFEST_CURSOR,
    "objects": re.compile(r"\d{1,9}"),
    "prefix": re.compile(r"[!-~]+"),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object that may become a document.

    Attributes:
        source: as it is now; unseen where the store has none of this name, or does not say: its
            document will tell why it cannot be read.
        fields: what goes with it.
        cursor: where the listing goes on behind it.
        skipped: what lay before it and is no document.
    """

    source: SourceObject
    fields: RowFields
    cursor: str
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a listing.

    Attributes:
        candidates: in its order.
        cursor: where it goes on behind them, and behind what was skipped.
        skipped: what lay behind the last candidate and is no document.
    """

    candidates: list[Candidate] = field(default_factory=list)
    cursor: str | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ListingPlan:
    """What is gone through, and by which rules.

    Attributes:
        source: as it was asked for; see ``api.batch_sources``.
        manifest: as it was when it was opened first; None: there is none.
        rules: for what it names.
        page_objects: most of a page; fewer of those that are named.
    """

    source: Mapping[str, Any]
    manifest: SourceObject | None
    rules: EntryRules
    page_objects: int = LISTED_OBJECTS


@contextmanager
def looking(at_once: int) -> Iterator[Executor]:
    """Lend threads that ask for objects; what they have not begun by the end is not asked for.

    Of a store that is away each answer may take minutes.
    """
    executor = ThreadPoolExecutor(at_once, thread_name_prefix="look")
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def is_cursor(kind: str, text: str) -> bool:
    """Say whether a text from outside can be the cursor of a source of this kind."""
    return _CURSORS[kind].fullmatch(text) is not None


def open_manifest(
    store: ObjectStore, source: Mapping[str, Any], *, max_bytes: int
) -> SourceObject | None:
    """Return a manifest as it is now; None where the source is none.

    Raises:
        ListingFailedError: there is no such object, it has more than ``max_bytes``, or the store
            does not hand it out.
        StorageUnavailableError: the store is away.
    """
    if source["kind"] != "manifest":
        return None
    address = SourceAddress(source["bucket"], source["key"], source["version_id"])
    with _named(missing="source_not_found", refused="source_refused"):
        manifest = source_object.describe(store, address)
    if manifest.size_bytes > max_bytes:
        raise ListingFailedError(
            "invalid_manifest",
            f"The manifest has {manifest.size_bytes:,} bytes, and may have {max_bytes:,}; take "
            "several, or have PAGEFLEET_API_MAX_MANIFEST_BYTES raised.",
        )
    return manifest


def pages_of(
    plan: ListingPlan, store: ObjectStore, executor: Executor, *, cursor: str | None
) -> Iterator[Page]:
    """Yield what there is from ``cursor`` on; a page of a manifest may have no objects.

    Args:
        plan: what is gone through.
        store: any bucket of the service.
        executor: asks for objects by name, several at once.
        cursor: of the last candidate or page that was taken; None: none was.

    Raises:
        ListingFailedError: it cannot be gone through to its end.
        StorageUnavailableError: the store is away.
    """
    if plan.source["kind"] == "prefix":
        yield from _prefix_pages(plan, store, cursor)
        return
    some: list[NamedEntry] = []
    for each in named_entries(plan, store, cursor=cursor):
        if isinstance(each, NamedEntry):
            some.append(each)
            if len(some) < min(NAMED_OBJECTS, plan.page_objects):
                continue
        yield Page(_looked_at(some, store, executor), each.cursor)
        some = []
    if some:
        yield Page(_looked_at(some, store, executor), some[-1].cursor)


def named_entries(
    plan: ListingPlan, store: ObjectStore, *, cursor: str | None
) -> Iterator[NamedEntry | ReadSoFar]:
    """Yield the objects that a manifest or a request names; nobody has looked at them.

    Between those of a manifest there are marks, where there is nothing else for long too.

    Raises:
        ListingFailedError: the manifest is none, another one by now, or cannot be had.
        StorageUnavailableError: the store is away.
    """
    if plan.manifest is None:
        yield from _objects(plan, cursor)
        return
    with _named(missing="source_not_found", refused="source_refused"):
        yield from manifest_entries(
            store,
            plan.manifest,
            manifest_format=plan.source["format"],
            rules=plan.rules,
            cursor=cursor,
        )


def _objects(plan: ListingPlan, cursor: str | None) -> Iterator[NamedEntry]:
    done = 0 if cursor is None else int(cursor)
    for number, named in enumerate(plan.source["objects"][done:], start=done + 1):
        address = SourceAddress(named["bucket"], named["key"], named["version_id"])
        _require_allowed(address, plan.rules)
        fields = RowFields(named["options"], named["metadata"], named["external_id"])
        yield NamedEntry(address, fields, str(number))


def _prefix_pages(plan: ListingPlan, store: ObjectStore, cursor: str | None) -> Iterator[Page]:
    bucket, prefix = plan.source["bucket"], plan.source["prefix"]
    _require_allowed(SourceAddress(bucket, prefix), plan.rules)
    after = "" if cursor is None else unquote(cursor)
    with _named(missing="bucket_not_found", refused="listing_refused"):
        listing = source_object.list_prefix(store, bucket, prefix, after=after)
        while found := list(islice(listing, plan.page_objects)):
            yield _page(bucket, found)


def _page(bucket: str, found: list[StoredObject]) -> Page:
    candidates = []
    skipped = 0
    for each in found:
        source = SourceObject(SourceAddress(bucket, each.key), None, each.etag, each.size_bytes)
        if _is_skipped(source):
            skipped += 1
            continue
        candidates.append(Candidate(source, RowFields(), _cursor_of(each.key), skipped))
        skipped = 0
    return Page(candidates, _cursor_of(found[-1].key), skipped)


def _is_skipped(found: SourceObject) -> bool:
    """Say whether an object is a folder, or has a key that cannot be written down.

    Or one with the steps of a path, which some stores walk when it is asked for, out of the prefix.
    """
    key = found.address.key
    has_steps = not {".", ".."}.isdisjoint(key.split("/"))
    return found.is_folder or has_steps or not is_usable_name(key)


def _cursor_of(key: str) -> str:
    # As an address has it: a key may hold what neither a database nor a log takes.
    return quote(key.encode("utf-8", "surrogatepass"))


def _looked_at(
    entries: list[NamedEntry], store: ObjectStore, executor: Executor
) -> list[Candidate]:
    # Once for each, so that one which arrives meanwhile is not both there and not.
    addresses = list(dict.fromkeys(entry.address for entry in entries))
    seen = executor.map(lambda address: _look_at(store, address), addresses)
    found = dict(zip(addresses, seen, strict=True))
    return [Candidate(found[entry.address], entry.fields, entry.cursor) for entry in entries]


def _look_at(store: ObjectStore, address: SourceAddress) -> SourceObject:
    try:
        return source_object.describe(store, address)
    except (SourceNotFoundError, SourceRefusedError):
        return source_object.unseen(address)


def _require_allowed(address: SourceAddress, rules: EntryRules) -> None:
    """Ask once more: the operator may have thought otherwise since the batch was made.

    Raises:
        ListingFailedError: documents may not come from there any more.
    """
    try:
        require_allowed(address, rules.allowed, tenant=rules.tenant)
    except ApiError as error:
        raise ListingFailedError("source_not_allowed") from error


@contextmanager
def _named(*, missing: str, refused: str) -> Iterator[None]:
    """Raise what a store refuses as the end of the listing.

    Raises:
        ListingFailedError: with the code that stands for it.
    """
    try:
        yield
    except SourceNotFoundError as error:
        raise ListingFailedError(missing) from error
    except SourceRefusedError as error:
        raise ListingFailedError(refused) from error
    except ObjectChangedError as error:
        raise ListingFailedError("source_changed") from error
