"""CSV that a spreadsheet shows and does not run."""

import csv
import io
from collections.abc import Iterable, Sequence

from workers.ocr.exports.escaping import harmless_cell


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV (RFC 4180); None is an empty cell, and no text is a formula."""
    written = io.StringIO()
    writer = csv.writer(written)
    for row in rows:
        writer.writerow([harmless_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return written.getvalue()
