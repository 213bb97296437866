"""A manifest as a source: a row for each file, with what goes with it."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from api.manifest_rows import (
    LINE_CHARACTERS,
    HeaderError,
    LineTooLongError,
    Row,
    RowError,
    csv_header,
    csv_rows,
    fields_of,
    json_rows,
    path_of,
)
from cli.errors import EXIT_USAGE, CommandError
from cli.ingest.content import FileContent
from cli.ingest.folder import fingerprint_of
from cli.ingest.found import Found, SentFields, refused

# Sources that are not on this machine have a scheme.
_SCHEME: Final = "://"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A CSV file with a header, or a file of one JSON object a line; paths are relative to it."""

    path: Path

    def scan(self) -> Iterator[Found]:
        rows = self._csv_rows() if self.path.suffix.lower() == ".csv" else self._json_rows()
        for number, row in rows:
            yield self._found(number, row)

    def _found(self, number: int, row: Row | RowError) -> Found:
        label = f"{self.path.name}:{number}"
        if isinstance(row, RowError):
            return refused(label, "invalid_row", f"{row}")
        try:
            way = path_of(row)
        except RowError as error:
            return refused(label, "invalid_row", f"{error}")
        try:
            fields = _fields(row)
        except RowError as error:
            return refused(f"{way} ({label})", "invalid_row", f"{error}")
        key = _key(way, fields)
        if _SCHEME in way:
            return refused(
                key,
                "unsupported_source",
                "Only files of this machine can be sent by a manifest of this machine.",
                fields=fields,
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

    def _csv_rows(self) -> Iterator[tuple[int, Row | RowError]]:
        with self._opened() as file:
            lines = _Lines(file)
            try:
                header = csv_header(lines)
            except HeaderError as error:
                raise self._unusable(str(error)) from error
            for row in csv_rows(lines, header):
                if row is not None:
                    yield lines.number, row

    def _json_rows(self) -> Iterator[tuple[int, Row | RowError]]:
        with self._opened() as file:
            lines = _Lines(file)
            for row in json_rows(lines):
                if row is not None:
                    yield lines.number, row

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


class _Lines:
    """The lines of a file; one that is too long is an error, and the next one follows it.

    Attributes:
        number: of the last line, counted from 1.
    """

    def __init__(self, file: IO[str]) -> None:
        self.number = 0
        self._file = file

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LINE_CHARACTERS)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) < LINE_CHARACTERS or line.endswith("\n"):
            return line
        while line and not line.endswith("\n"):
            line = self._file.readline(LINE_CHARACTERS)
        raise LineTooLongError(f"A line has more than {LINE_CHARACTERS:,} characters.")


def _fields(row: Row) -> SentFields:
    """Return what goes with a file as it is sent.

    Raises:
        RowError: a field is not what it has to be.
    """
    fields = fields_of(row)
    return SentFields(
        options=_text(fields.options),
        metadata=_text(fields.metadata),
        external_id=fields.external_id,
    )


def _text(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value)


def _key(way: str, fields: SentFields) -> str:
    """Return what tells a row from others of the same path, and is the same when rows move."""
    if fields == SentFields():
        return way
    told = json.dumps([fields.options, fields.metadata, fields.external_id])
    return f"{way}\0{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
