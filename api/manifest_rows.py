"""The rows of a manifest: a name of a file in each, and what goes with it.

CSV with a header, or a JSON object a line; of files on a user's machine (``cli.ingest``), and of
objects in a bucket (``api.object_manifest``).
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

COLUMNS: Final = frozenset({"path", "id", "metadata", "options"})
LINE_CHARACTERS: Final = 2**20
"""Most that a line may have, and a row of CSV with all of its lines."""

Row = Mapping[str, Any]


class RowError(Exception):
    """A row cannot be understood; the text says why, in a sentence."""


class RowTooLongError(RowError):
    """A row of CSV has more characters than one may have, and no end so far."""

    def __init__(self) -> None:
        super().__init__(
            f"The row has more than {LINE_CHARACTERS:,} characters, so that nothing behind it is"
            " read; a quotation mark may not be closed."
        )


class LineTooLongError(Exception):
    """A line has more characters than any of a manifest may have; the text says so likewise."""


class HeaderError(Exception):
    """A CSV does not begin with the columns of a manifest; the text says with what."""


@dataclass(frozen=True, slots=True)
class RowFields:
    """What goes with a file; None where the row has nothing."""

    options: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    external_id: str | None = None


def csv_header(lines: Iterable[str]) -> Sequence[str]:
    """Return the columns that the first row names; reads no further.

    Raises:
        HeaderError: they are none of a manifest.
    """
    try:
        header = next(csv.reader(_LinesOfRow(lines), strict=True), [])
    except RowTooLongError as error:
        raise HeaderError(f"its first row has more than {LINE_CHARACTERS:,} characters") from error
    except LineTooLongError as error:
        raise HeaderError(f"its first line has more than {LINE_CHARACTERS:,} characters") from error
    except csv.Error as error:
        raise HeaderError(f"its first line is no CSV ({error})") from error
    if "path" not in header or set(header) - COLUMNS or len(set(header)) != len(header):
        raise HeaderError(f"its first line names the columns {', '.join(header) or '(none)'}")
    return header


def csv_rows(lines: Iterable[str], header: Sequence[str]) -> Iterator[Row | RowError | None]:
    """Yield the rows behind the header, and what is wrong in place of one that cannot be had.

    None stands for a line with nothing on it, so that whoever reads is asked for nothing in vain.
    """
    lines_of_row = _LinesOfRow(lines)
    reader = csv.reader(lines_of_row, strict=True)
    while True:
        lines_of_row.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except RowTooLongError as error:
            yield error
            return  # where the next row begins, nobody can tell
        except LineTooLongError as error:  # of the lines, which the reader passes on
            yield RowError(f"{error}")
            continue
        except csv.Error as error:
            yield RowError(f"The row is no CSV: {error}.")
            continue
        if not cells:
            yield None
            continue
        if len(cells) != len(header):
            yield RowError(f"The row has {len(cells)} cells, not {len(header)}.")
            continue
        yield dict(zip(header, cells, strict=True))


class _LinesOfRow:
    """Lines on their way to the CSV module, which collects those of one row without any limit."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._characters = 0

    def begin(self) -> None:
        """Begin the next row."""
        self._characters = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._characters += len(line)
        if self._characters > LINE_CHARACTERS:
            raise RowTooLongError
        return line


def json_rows(lines: Iterator[str]) -> Iterator[Row | RowError | None]:
    """Yield the objects of the lines, as ``csv_rows`` does; a line of spaces has nothing on it."""
    while True:
        try:
            line = next(lines)
        except StopIteration:
            return
        except LineTooLongError as error:
            yield RowError(f"{error}")
            continue
        yield _json_row(line) if line.strip() else None


def _json_row(line: str) -> Row | RowError:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return RowError(f"The line is no JSON: {error}.")
    if not isinstance(row, dict):
        return RowError("The line is no JSON object.")
    unknown = sorted(set(row) - COLUMNS)
    if unknown:
        return RowError(f"The line has the unknown field {unknown[0]!r}.")
    return row


def path_of(row: Row) -> str:
    """Return the name of the file.

    Raises:
        RowError: the row has none.
    """
    path = row.get("path")
    if not isinstance(path, str) or not path:
        raise RowError("The row has no path.")
    return path


def fields_of(row: Row) -> RowFields:
    """Return what goes with a file; empty cells are nothing.

    Raises:
        RowError: a field is not what it has to be.
    """
    own_id = row.get("id")
    if own_id is not None and not isinstance(own_id, (str, int)):
        raise RowError("The id is neither text nor a whole number.")
    if isinstance(own_id, str) and not own_id.isprintable():
        raise RowError("The id is no printable text.")
    return RowFields(
        options=_object("options", row.get("options")),
        metadata=_object("metadata", row.get("metadata")),
        external_id=None if own_id in {None, ""} else str(own_id),
    )


def _object(name: str, value: Any) -> dict[str, Any] | None:  # noqa: ANN401 - whatever a manifest has
    if value in (None, ""):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RowError(f"The {name} are no JSON.") from error
    if not isinstance(value, dict):
        raise RowError(f"The {name} are no JSON object.")
    return value
