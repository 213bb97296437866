"""CSV (RFC 4180), a row for each line of text, with its place; each page has a row at least."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

from workers.ocr.exports.escaping import csv_text
from workers.ocr.exports.page_view import Header, Page, blocks_of, is_failed, notices

COLUMNS: Final = (
    "page_number",
    "page_state",
    "block",
    "line",
    "text",
    "confidence",
    "x_min",
    "y_min",
    "x_max",
    "y_max",
    "page_width_px",
    "page_height_px",
    "notice",
)


def line_table(_header: Header, pages: Iterable[Page]) -> Iterator[str]:
    """Yield the table, a page a part. A page without lines has one row, and what is amiss with it.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    yield _rows([COLUMNS])
    for page in pages:
        yield _rows(_page(page))


def _page(page: Page) -> Iterator[tuple[Any, ...]]:
    first = page["page_number"], page["state"]
    size = ("", "") if is_failed(page) else (page["width_px"], page["height_px"])
    last = (*size, csv_text(" ".join(notices(page))))
    is_empty = True
    for block in blocks_of(page):
        for line in block.lines:
            is_empty = False
            place = (*first, block.id, line.id)
            yield (*place, csv_text(line.text), line.confidence, *line.box, *last)
    if is_empty:
        yield (*first, *[""] * 8, *last)


def _rows(rows: Iterable[tuple[Any, ...]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()
