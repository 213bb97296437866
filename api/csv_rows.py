"""CSV that a spreadsheet shows and does not run."""

import csv
import io
from collections.abc import Iterable, Sequence

# What a spreadsheet takes for the beginning of a formula, or skips before one.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def harmless(cell: str) -> str:
    """Return a text as a cell: an apostrophe comes before what would be a formula."""
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA_STARTS) else cell


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV (RFC 4180); None is an empty cell, and no text is a formula."""
    written = io.StringIO()
    writer = csv.writer(written)
    for row in rows:
        writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in row])
    return written.getvalue()
