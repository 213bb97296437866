"""Counting what a batch would be filled with: never for long, whatever it is."""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from api.listing_pages import ListingPlan
from api.object_manifest import EntryRules
from api.place_settings import AllowedSource
from api.plan_batch import plan_batch
from storage.memory import InMemoryObjectStore
from storage.source_object import SourceAddress, SourceObject

RULES = EntryRules(allowed=(AllowedSource(bucket="scans", prefix="in/"),), tenant="t", options={})
MANIFEST = SourceObject(SourceAddress("scans", "in/m"), None, "etag", 2**40)


class EmptyLines(InMemoryObjectStore):
    """A service whose manifests go on with lines that name nothing."""

    def __init__(self, first: bytes) -> None:
        super().__init__()
        self.first = first

    def other_bucket(self, name: str) -> "EmptyLines":
        del name
        return self

    def stream(self, key: str, **_: Any) -> Iterator[bytes]:
        del key
        return chain([self.first], repeat(b"\n" * 2**20))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("first", "manifest_format"), [(b"path\n", "csv"), (b"\n", "ndjson")])
def test_a_manifest_of_empty_lines_is_counted_for_no_longer_than_any(
    first: bytes, manifest_format: str
) -> None:
    source = {"kind": "manifest", "format": manifest_format}

    counted = plan_batch(
        ListingPlan(source, MANIFEST, RULES),
        EmptyLines(first),
        cursor=None,
        max_pages=1,
        counting_s=0.2,
    )

    assert counted.files == counted.missing == 0
    assert counted.cursor is not None
