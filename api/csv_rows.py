"""CSV that a spreadsheet shows and does not run."""

import csv
import io
from collections.abc import Iterable, Sequence

from workers.ocr.exports.escaping import harmless_cell


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV (RFC 4180): None is an empty cell, truth as in JSON, no text a formula."""
    written = io.StringIO()
    writer = csv.writer(written)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return written.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return harmless_cell(value) if isinstance(value, str) else value
