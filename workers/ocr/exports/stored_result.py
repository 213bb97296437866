"""A stored result read in parts: its header, then its pages one by one, in bounded memory.

Quotes inside a JSON string are escaped, so none of the marks below can be part of a text.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from workers.ocr.errors import StoredResultError

_TEXT_BEGINS: Final = b',"full_text":'
_PAGES_BEGIN: Final = b',"pages":['
_PAGE_BEGINS: Final = b',{"page_number":'


def open_result(
    parts: Iterable[bytes], *, wanted: range | None = None
) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the header (all before ``full_text``) and what yields the page objects in order.

    Args:
        parts: the result's bytes, cut anywhere.
        wanted: only pages with these numbers are parsed; None for all.

    Raises:
        StoredResultError: it has no such form. The iterator raises it too.
    """
    source = iter(parts)
    head, rest = _until(source, b"", _TEXT_BEGINS)
    header: dict[str, Any] = orjson.loads(head + b"}")
    return header, _pages(source, rest, wanted)


def _pages(source: Iterator[bytes], rest: bytes, wanted: range | None) -> Iterator[dict[str, Any]]:
    rest = _after(source, rest, _PAGES_BEGIN)
    number = 0
    for raw in _page_objects(source, rest):
        number += 1
        if wanted is not None and number not in wanted:
            if number >= wanted.stop:
                return
            continue
        try:
            yield orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise StoredResultError(f"page {number} of the result is no page object") from error


def _page_objects(source: Iterator[bytes], rest: bytes) -> Iterator[bytes]:
    """Yield the bytes of each page object; what ends the last one is taken off.

    Raises:
        StoredResultError: it is cut off.
    """
    buffer = bytearray(rest)
    searched = 0
    while True:
        place = buffer.find(_PAGE_BEGINS, searched)
        if place >= 0:
            yield bytes(buffer[:place])
            del buffer[: place + 1]
            searched = 0
            continue
        searched = max(len(buffer) - len(_PAGE_BEGINS), 0)
        part = next(source, b"")
        if not part:
            break
        buffer += part
    last = bytes(buffer).rstrip()
    if not last.endswith(b"]}"):
        raise StoredResultError("the result is cut off")
    if last != b"]}":
        yield last[:-2]


def _until(source: Iterator[bytes], rest: bytes, mark: bytes) -> tuple[bytes, bytes]:
    """Return what stands before a mark, and what has been read after it.

    Raises:
        StoredResultError: it is cut off.
    """
    buffer = bytearray(rest)
    while (place := buffer.find(mark)) < 0:
        part = next(source, b"")
        if not part:
            raise StoredResultError("the result is cut off")
        buffer += part
    return bytes(buffer[:place]), bytes(buffer[place + len(mark) :])


def _after(source: Iterator[bytes], rest: bytes, mark: bytes) -> bytes:
    """Return what has been read after a mark; what stands before it is not kept.

    Raises:
        StoredResultError: it is cut off.
    """
    buffer = rest
    while (place := buffer.find(mark)) < 0:
        part = next(source, b"")
        if not part:
            raise StoredResultError("the result is cut off")
        buffer = buffer[-len(mark) :] + part
    return buffer[place + len(mark) :]
