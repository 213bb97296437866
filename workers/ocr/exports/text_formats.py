"""The writers of all formats that are text, by name."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from workers.ocr.exports.alto import alto
from workers.ocr.exports.formats import ExportFormat
from workers.ocr.exports.hocr import hocr
from workers.ocr.exports.line_table import line_table
from workers.ocr.exports.markdown import markdown
from workers.ocr.exports.page_view import Header, Page
from workers.ocr.exports.plain import plain_text, result_json

TextWriter = Callable[[Header, Iterable[Page]], Iterator[str]]

TEXT_WRITERS: Final[dict[ExportFormat, TextWriter]] = {
    "json": result_json,
    "text": plain_text,
    "markdown": markdown,
    "hocr": hocr,
    "alto": alto,
    "csv": line_table,
}
