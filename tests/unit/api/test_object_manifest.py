"""Manifests in a bucket: what their rows say, and going on behind any of them."""

import json
from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from api.listing_errors import ListingFailedError
from api.manifest_rows import HeaderError, RowTooLongError, csv_header, csv_rows
from api.object_manifest import (
    EntryRules,
    ManifestLines,
    NamedEntry,
    ReadSoFar,
    manifest_entries,
)
from api.place_settings import AllowedSource
from storage import source_object
from storage.errors import ObjectChangedError
from storage.memory import InMemoryObjectStore
from storage.source_object import SourceAddress, SourceObject

RULES = EntryRules(
    allowed=(AllowedSource(bucket="scans", prefix="in/", tenants=frozenset({"archive"})),),
    tenant="archive",
    options={"dpi": 100},
)
CSV = (
    "\ufeffpath,id,metadata,options\r\n"
    's3://scans/in/a.pdf,box-1,"{""shelf"": 3}","{""dpi"": 300}"\r\n'
    "\r\n"
    '"s3://scans/in/Größe, ""5%"" +\n1.pdf",,,\r\n'
    "s3://scans/in/文 書.pdf,2,,"
)
ENTRIES = [
    ("in/a.pdf", "box-1", {"shelf": 3}, {"dpi": 300}),
    ('in/Größe, "5%" +\n1.pdf', None, None, None),
    ("in/文 書.pdf", "2", None, None),
]
NDJSON = "\n".join([
    json.dumps({
        "path": "s3://scans/in/a.pdf",
        "id": "box-1",
        "metadata": {"shelf": 3},
        "options": {"dpi": 300},
    }),
    "",
    json.dumps({"path": 's3://scans/in/Größe, "5%" +\n1.pdf'}),
    json.dumps({"path": "s3://scans/in/文 書.pdf", "id": 2}, ensure_ascii=False),
])


@pytest.fixture
def store() -> InMemoryObjectStore:
    return InMemoryObjectStore()


def put(store: InMemoryObjectStore, text: str | bytes, *, name: str = "m.csv") -> SourceObject:
    body = text.encode() if isinstance(text, str) else text
    store.other_bucket("scans").put(name, body, media_type="text/csv")
    return source_object.describe(store, SourceAddress("scans", name))


def read(
    store: InMemoryObjectStore,
    manifest: SourceObject,
    *,
    cursor: str | None = None,
    manifest_format: str = "csv",
) -> Iterator[NamedEntry]:
    for each in manifest_entries(
        store, manifest, manifest_format=manifest_format, rules=RULES, cursor=cursor
    ):
        if isinstance(each, NamedEntry):
            yield each


def told(entry: NamedEntry) -> tuple[object, ...]:
    fields = entry.fields
    return (entry.address.key, fields.external_id, fields.metadata, fields.options)


@pytest.mark.parametrize(("text", "manifest_format"), [(CSV, "csv"), (NDJSON, "ndjson")])
def test_a_row_names_an_object_and_what_goes_with_it(
    store: InMemoryObjectStore, text: str, manifest_format: str
) -> None:
    manifest = put(store, text)

    entries = list(read(store, manifest, manifest_format=manifest_format))

    assert list(map(told, entries)) == ENTRIES


@pytest.mark.parametrize(("text", "manifest_format"), [(CSV, "csv"), (NDJSON, "ndjson")])
@pytest.mark.parametrize("done", [1, 2, 3])
def test_reading_goes_on_behind_any_row(
    store: InMemoryObjectStore, text: str, manifest_format: str, done: int
) -> None:
    manifest = put(store, text)
    entries = list(read(store, manifest, manifest_format=manifest_format))

    rest = read(store, manifest, manifest_format=manifest_format, cursor=entries[done - 1].cursor)

    assert list(rest) == entries[done:]


def test_a_row_that_is_right_is_taken(store: InMemoryObjectStore) -> None:
    manifest = put(store, "path,id,metadata,options\ns3://scans/in/a.pdf,,,\n")

    assert list(map(told, read(store, manifest))) == [("in/a.pdf", None, None, None)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("in/a.pdf,,,", "s3://bucket/key"),
        ("s3://scans,,,", "s3://bucket/key"),
        ("s3://scans/,,,", "s3://bucket/key"),
        (",,,", "no path"),
        ("s3://scans/out/a.pdf,,,", "source_not_allowed"),
        ("s3://other/in/a.pdf,,,", "source_not_allowed"),
        (f"s3://scans/in/{'x' * 1_025},,,", "path: String should have at most 1024 characters"),
        (f"s3://scans/in/{'ü' * 600},,,", "a length, that no object of S3 has"),
        ("s3://scans/in/a\0.pdf,,,", "path: String should match"),
        ("s3://scans/in/a.pdf,,{,", "metadata are no JSON"),
        ("s3://scans/in/a.pdf,,[],", "metadata are no JSON object"),
        ('s3://scans/in/a.pdf,,"{""a"": NaN}",', "metadata: is not JSON"),
        (f's3://scans/in/a.pdf,,"{{""a"": ""{"x" * 17_000}""}}",', "16,384 bytes"),
        ('s3://scans/in/a.pdf,,,"{""dpi"": 1}"', "options.dpi"),
        ('s3://scans/in/a.pdf,,,"{""color"": 1}"', "options.color"),
        (f"s3://scans/in/a.pdf,{'x' * 256},,", "id: String should have at most 255 characters"),
        ("s3://scans/in/a.pdf,a\x07b,,", "printable"),
        ("s3://scans/in/a.pdf", "1 cells, not 4"),
        ('s3://scans/in/a.pdf,"a"b,,', "no CSV"),
    ],
)
def test_a_row_that_is_wrong_is_named_by_its_line(
    store: InMemoryObjectStore, row: str, reason: str
) -> None:
    manifest = put(store, f"path,id,metadata,options\ns3://scans/in/first.pdf,,,\n{row}\n")
    found = read(store, manifest)
    next(found)

    with pytest.raises(ListingFailedError) as raised:
        list(found)

    assert raised.value.code == "invalid_manifest"
    assert (raised.value.detail or "").startswith("Line 3: ")
    assert reason in (raised.value.detail or "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "(none)"),
        (b"key,id\na,b\n", "key, id"),
        (b"path,path\n", "path, path"),
        (b"path\n\xff\xfe\n", "Line 2 is not UTF-8"),
        (b"path\n" + b"x" * (2**20 + 2), "Line 2 has more than 1,048,576 bytes"),
        (b"path,\0\n", "columns"),
    ],
)
def test_what_is_no_manifest_is_said_to_be_none(
    store: InMemoryObjectStore, text: bytes, reason: str
) -> None:
    manifest = put(store, text)

    with pytest.raises(ListingFailedError) as raised:
        list(read(store, manifest))

    assert reason in (raised.value.detail or "")
    assert "\0" not in (raised.value.detail or "")


def test_a_manifest_that_was_replaced_is_not_read_on(store: InMemoryObjectStore) -> None:
    manifest = put(store, CSV)
    cursor = next(read(store, manifest)).cursor
    put(store, CSV.replace("box-1", "box-2"))

    with pytest.raises(ObjectChangedError):
        list(read(store, manifest, cursor=cursor))


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1_000])
def test_lines_are_the_same_however_the_bytes_come(block_bytes: int) -> None:
    text = "é\n\n文書\r\nlast".encode()
    blocks = [text[start : start + block_bytes] for start in range(0, len(text), block_bytes)]
    lines = ManifestLines(blocks)

    assert [(line, lines.offset) for line in lines] == [
        ("é\n", 3),
        ("\n", 4),
        ("文書\r\n", 12),
        ("last", 16),
    ]


# Closes a cell, begins the next one and does not close it: a row that has no end.
ENDLESS = '","a\n'


def endless(first: str) -> ManifestLines:
    return ManifestLines(map(str.encode, chain([first], repeat(ENDLESS * 1_000))))


def test_a_row_of_lines_without_end_is_broken_off() -> None:
    lines = endless('"a\n')

    (refused,) = csv_rows(lines, ["path"])

    assert isinstance(refused, RowTooLongError)
    assert lines.offset < 2 * 2**20


def test_a_header_of_lines_without_end_is_broken_off() -> None:
    lines = endless('"path\n')

    with pytest.raises(HeaderError, match="first row has more than 1,048,576 characters"):
        csv_header(lines)

    assert lines.offset < 2 * 2**20


def test_a_long_manifest_of_short_rows_is_read_to_its_end() -> None:
    row = "x" * 1_000 + "\n"
    lines = ManifestLines([row.encode() * 1_000] * 2)

    assert len(list(csv_rows(lines, ["path"]))) == 2_000


@pytest.mark.parametrize(
    ("text", "manifest_format"),
    [
        ("path\n" + "\n" * 12_000, "csv"),
        ("\n" * 12_000, "ndjson"),
        ((" " * 999_999 + "\n") * 11, "ndjson"),
    ],
    ids=["CSV", "short lines", "long lines"],
)
def test_lines_with_nothing_on_them_are_told_of_on_the_way(
    store: InMemoryObjectStore, text: str, manifest_format: str
) -> None:
    manifest = put(store, text)

    def read_from(cursor: str | None) -> list[NamedEntry | ReadSoFar]:
        return list(
            manifest_entries(
                store, manifest, manifest_format=manifest_format, rules=RULES, cursor=cursor
            )
        )

    marks = read_from(None)

    assert len({mark.cursor for mark in marks}) == 2
    assert read_from(marks[0].cursor) == marks[1:]
