"""A manifest in a bucket, read row by row from wherever an earlier reading ended.

A manifest is taken whole or not at all: whoever goes through it reads it to its end once before the
first of its objects becomes a document, so that a mistake in its last line is named at once.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import ValidationError

from api.accept_source import require_allowed
from api.batch_sources import NamedObject
from api.errors import ApiError, FieldProblem, InvalidFieldsError
from api.listing_errors import ListingFailedError
from api.manifest_rows import (
    HeaderError,
    Row,
    RowError,
    RowFields,
    csv_header,
    csv_rows,
    fields_of,
    json_rows,
    path_of,
)
from api.place_settings import AllowedSources
from api.upload_form import problems_of, resolve_options
from storage import source_object
from storage.object_store import ObjectStore
from storage.source_object import SourceAddress, SourceObject

LINE_BYTES: Final = 2**20
CURSOR: Final = re.compile(r"\d{1,18}:\d{1,18}")
"""What the cursor of an entry looks like: the byte behind its line, and the line's number."""
_BLOCK_BYTES: Final = 2**20
# Between two marks, whatever lies between them: some hundredths of a second of a fast store.
_MARKED_LINES: Final = 5_000
_MARKED_BYTES: Final = 4 * 2**20
_SCHEME: Final = "s3://"
_INVALID: Final = "invalid_manifest"
# What a request calls otherwise than a manifest does.
_COLUMNS: Final = {"bucket": "path", "key": "path", "external_id": "id"}


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """An object that a manifest or a request names, and what goes with it.

    Attributes:
        address: where it lies.
        fields: what goes with it.
        cursor: where the listing goes on behind it.
    """

    address: SourceAddress
    fields: RowFields
    cursor: str


@dataclass(frozen=True, slots=True)
class ReadSoFar:
    """A mark between entries: a manifest may have none for gigabytes, and time passes over them.

    Attributes:
        cursor: where the listing goes on behind what was read.
    """

    cursor: str


@dataclass(frozen=True, slots=True)
class EntryRules:
    """What the rows of a manifest have to keep to.

    Attributes:
        allowed: whence documents may come.
        tenant: whose they become.
        options: of the batch.
    """

    allowed: AllowedSources
    tenant: str
    options: Mapping[str, Any]


def manifest_entries(
    store: ObjectStore,
    manifest: SourceObject,
    *,
    manifest_format: str,
    rules: EntryRules,
    cursor: str | None,
) -> Iterator[NamedEntry | ReadSoFar]:
    """Yield the objects of a manifest, from ``cursor`` on, with the memory of a few lines.

    And a mark every some thousand lines or some MiB, with entries or without.

    Args:
        store: any bucket of the service.
        manifest: as it was when it was opened first.
        manifest_format: ``csv`` or ``ndjson``.
        rules: for its rows.
        cursor: of the last entry or mark that was taken; None: none was.

    Raises:
        ListingFailedError: a row is wrong, or the file is no manifest.
        ObjectChangedError: the manifest is another one by now.
        SourceNotFoundError: it is gone.
        SourceRefusedError: the store does not hand it out.
        StorageUnavailableError: the store is away.
    """
    offset, number = (0, 0) if cursor is None else map(int, cursor.split(":"))
    header: Sequence[str] = ()
    is_csv = manifest_format == "csv"
    if is_csv and offset:
        with closing(_blocks(store, manifest, start=0)) as beginning:
            header = _header(ManifestLines(beginning))
    with closing(_blocks(store, manifest, start=offset)) as blocks:
        lines = ManifestLines(blocks, offset=offset, number=number)
        if is_csv and not offset:
            header = _header(lines)
        rows = csv_rows(lines, header) if is_csv else json_rows(lines)
        marked_offset, marked_number = lines.offset, lines.number
        for row in rows:
            if row is not None:
                yield _entry(row, lines, rules)
            if (
                lines.number - marked_number >= _MARKED_LINES
                or lines.offset - marked_offset >= _MARKED_BYTES
            ):
                marked_offset, marked_number = lines.offset, lines.number
                yield ReadSoFar(lines.cursor)


def checked(row: Row, rules: EntryRules) -> tuple[SourceAddress, RowFields]:
    """Return which object a row names, and what goes with it.

    Raises:
        RowError: something of it is wrong.
    """
    path = path_of(row)
    bucket, _, key = path.removeprefix(_SCHEME).partition("/")
    if not path.startswith(_SCHEME) or not bucket or not key:
        raise RowError("The path is no address of an object, as s3://bucket/key.")
    fields = fields_of(row)
    try:
        # As a request names it, so that the same may be named in both.
        named = NamedObject(
            bucket=bucket,
            key=key,
            external_id=fields.external_id,
            metadata=fields.metadata,
            options=fields.options or {},
        )
    except ValidationError as error:
        raise RowError(_first_of(problems_of(error))) from error
    address = SourceAddress(named.bucket, named.key)
    try:
        require_allowed(address, rules.allowed, tenant=rules.tenant)
        resolve_options(rules.options, named.options)
    except InvalidFieldsError as error:
        raise RowError(_first_of(error.fields)) from error
    except ApiError as error:
        raise RowError("Documents may not come from there (source_not_allowed).") from error
    return address, fields


def _first_of(problems: Sequence[FieldProblem]) -> str:
    problem = problems[0]
    return f"{_COLUMNS.get(problem.field, problem.field)}: {problem.message}."


class ManifestLines:
    """The lines of a manifest one by one, and where the last of them ended.

    Attributes:
        offset: of the byte behind the last line.
        number: of the last line, counted from 1.
        cursor: of whatever ends with the last line.
    """

    def __init__(self, blocks: Iterable[bytes], *, offset: int = 0, number: int = 0) -> None:
        self.offset = offset
        self.number = number
        self._blocks = iter(blocks)
        self._block = b""
        self._start = 0

    @property
    def cursor(self) -> str:
        return f"{self.offset}:{self.number}"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._line()
        if not line:
            raise StopIteration
        self.offset += len(line)
        self.number += 1
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise ListingFailedError(_INVALID, f"Line {self.number} is not UTF-8.") from error
        return text.removeprefix("\ufeff") if self.number == 1 else text

    def _line(self) -> bytes:
        while (end := self._block.find(b"\n", self._start)) < 0:
            begun = self._block[self._start :]
            if len(begun) > LINE_BYTES:
                raise ListingFailedError(
                    _INVALID, f"Line {self.number + 1} has more than {LINE_BYTES:,} bytes."
                )
            self._start = 0
            following = next(self._blocks, b"")
            if not following:
                self._block = b""
                return begun
            self._block = begun + following
        line = self._block[self._start : end + 1]
        self._start = end + 1
        return line


def _blocks(
    store: ObjectStore, manifest: SourceObject, *, start: int
) -> Generator[bytes, None, None]:
    yield from source_object.stream(store, manifest, part_bytes=_BLOCK_BYTES, start=start)


def _entry(row: Row | RowError, lines: ManifestLines, rules: EntryRules) -> NamedEntry:
    try:
        if isinstance(row, RowError):
            raise row
        address, fields = checked(row, rules)
    except RowError as error:
        raise ListingFailedError(_INVALID, f"Line {lines.number}: {error}") from error
    return NamedEntry(address, fields, lines.cursor)


def _header(lines: ManifestLines) -> Sequence[str]:
    try:
        return csv_header(lines)
    except HeaderError as error:
        raise ListingFailedError(
            _INVALID,
            f"It is no manifest: {error}. It needs the column path, and may have id, metadata and "
            "options.",
        ) from error
