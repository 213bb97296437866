"""A manifest as a source: a row for each file, with what goes with it."""

import csv
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from cli.errors import EXIT_USAGE, CommandError
from cli.ingest.content import FileContent
from cli.ingest.folder import fingerprint_of
from cli.ingest.found import Found, SentFields, refused

_COLUMNS: Final = frozenset({"path", "id", "metadata", "options"})
_JSON_COLUMNS: Final = ("metadata", "options")
_LINE_BYTES: Final = 2**20
# Sources that are not on this machine have a scheme.
_SCHEME: Final = "://"


class _RowError(Exception):
    """A row cannot be understood; the text says why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A CSV file with a header, or a file of one JSON object a line; paths are relative to it."""

    path: Path

    def scan(self) -> Iterator[Found]:
        rows = self._csv_rows() if self.path.suffix.lower() == ".csv" else self._json_rows()
        for number, row in rows:
            yield self._found(number, row)

    def _found(self, number: int, row: Mapping[str, Any] | _RowError) -> Found:
        label = f"{self.path.name}:{number}"
        if isinstance(row, _RowError):
            return refused(label, "invalid_row", f"{row}")
        way = row.get("path")
        if not isinstance(way, str) or not way:
            return refused(label, "invalid_row", "The row has no path.")
        try:
            fields = _fields(row)
        except _RowError as error:
            return refused(f"{way} ({label})", "invalid_row", f"{error}")
        key = _key(way, fields)
        if _SCHEME in way:
            return refused(
                key, "unsupported_source", "Only files of this machine can be sent.", fields=fields
            )
        path = self.path.parent / way
        try:
            fingerprint = fingerprint_of(os.stat(path))  # noqa: PTH116 - Path.stat raises the same
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return refused(key, "unreadable", f"It cannot be read: {reason}.", fields=fields)
        return Found(
            key=key,
            path=way,
            name=path.name,
            fingerprint=fingerprint,
            content=FileContent(path, follow_link=True),
            is_named=True,
            fields=fields,
        )

    def _csv_rows(self) -> Iterator[tuple[int, Mapping[str, Any] | _RowError]]:
        with self._opened() as file:
            reader = csv.reader(file, strict=True)
            try:
                header = next(reader, [])
            except csv.Error as error:
                raise self._unusable(f"its first line is no CSV ({error})") from error
            self._require_columns(header)
            while True:
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield reader.line_num, _RowError(f"The row is no CSV: {error}.")
                    continue
                if not cells:
                    continue
                if len(cells) != len(header):
                    found = _RowError(f"The row has {len(cells)} cells, not {len(header)}.")
                    yield reader.line_num, found
                    continue
                yield reader.line_num, dict(zip(header, cells, strict=True))

    def _json_rows(self) -> Iterator[tuple[int, Mapping[str, Any] | _RowError]]:
        with self._opened() as file:
            number = 0
            while line := file.readline(_LINE_BYTES):
                number += 1
                if len(line) >= _LINE_BYTES and not line.endswith("\n"):
                    while line and not line.endswith("\n"):
                        line = file.readline(_LINE_BYTES)
                    yield number, _RowError(f"The line has more than {_LINE_BYTES:,} characters.")
                elif line.strip():
                    yield number, _parsed(line)

    def _require_columns(self, header: list[str]) -> None:
        unknown = sorted(set(header) - _COLUMNS)
        if "path" not in header or unknown or len(set(header)) != len(header):
            raise self._unusable(
                f"its first line names the columns {', '.join(header) or '(none)'}"
            )

    def _opened(self) -> IO[str]:
        try:
            # Bytes of a path that are no UTF-8 stay what they are.
            return self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
        except OSError as error:
            raise self._unusable(f"it cannot be read ({error.strerror})") from error

    def _unusable(self, why: str) -> CommandError:
        return CommandError(
            f"{self.path} is no manifest: {why}",
            "A manifest has the column path, and may have id, metadata and options.",
            exit_code=EXIT_USAGE,
        )


def _parsed(line: str) -> Mapping[str, Any] | _RowError:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _RowError(f"The line is no JSON: {error}.")
    if not isinstance(row, dict):
        return _RowError("The line is no JSON object.")
    unknown = sorted(set(row) - _COLUMNS)
    if unknown:
        return _RowError(f"The line has the unknown field {unknown[0]!r}.")
    return row


def _fields(row: Mapping[str, Any]) -> SentFields:
    """Return what goes with a file; empty cells are none.

    Raises:
        _RowError: a field is not what it has to be.
    """
    own_id = row.get("id")
    if own_id is not None and not isinstance(own_id, (str, int)):
        raise _RowError("The id is neither text nor a whole number.")
    if isinstance(own_id, str) and not own_id.isprintable():
        raise _RowError("The id is no printable text.")
    given = {name: _object(name, row.get(name)) for name in _JSON_COLUMNS}
    return SentFields(
        options=given["options"],
        metadata=given["metadata"],
        external_id=None if own_id in {None, ""} else str(own_id),
    )


def _object(name: str, value: Any) -> str | None:  # noqa: ANN401 - whatever a manifest has
    if value in (None, ""):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise _RowError(f"The {name} are no JSON.") from error
    if not isinstance(value, dict):
        raise _RowError(f"The {name} are no JSON object.")
    return json.dumps(value)


def _key(way: str, fields: SentFields) -> str:
    """Return what tells a row from others of the same path, and is the same when rows move."""
    if fields == SentFields():
        return way
    told = json.dumps([fields.options, fields.metadata, fields.external_id])
    return f"{way}\0{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
