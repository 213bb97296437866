"""Text and JSON of some of a document's pages, in the form that the whole ones are stored in."""

import tempfile
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from workers.ocr.document_result import PAGE_SEPARATOR
from workers.ocr.exports.page_view import Header, Page
from workers.ocr.page_text import page_text

# Below this the pages that wait for the end of the text do so in memory, above it on disk.
_SPOOL_BYTES: Final = 4 * 2**20
_PART_CHARACTERS: Final = 2**18


def plain_text(_header: Header, pages: Iterable[Page]) -> Iterator[str]:
    """Yield the pages' text, a form feed between two pages; a failed page has an empty part."""
    for number, page in enumerate(pages):
        yield (PAGE_SEPARATOR if number else "") + page_text(page)


def result_json(header: Header, pages: Iterable[Page]) -> Iterator[str]:
    """Yield a result with these pages alone; ``usage`` and ``state`` stay those of the document.

    ``full_text`` stands before the pages in a result, so the pages wait in a file.
    """
    with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, "w+", encoding="utf-8", newline="") as waiting:
        yield orjson.dumps(dict(header)).decode()[:-1] + ',"full_text":"'
        for number, page in enumerate(pages):
            piece = (PAGE_SEPARATOR if number else "") + page_text(page)
            # The pieces of an escaped text, joined, are the escaped text.
            yield orjson.dumps(piece).decode()[1:-1]
            waiting.write(("," if number else "") + orjson.dumps(page).decode())
        yield '","pages":['
        waiting.seek(0)
        while part := waiting.read(_PART_CHARACTERS):
            yield part
        yield "]}"
