"""Which pages are wanted: ``7`` or ``3-9``, and the name that the choice has in keys."""

import re
from typing import Final

_CHOICE: Final = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)


def parse_pages(given: str) -> range:
    """Return the page numbers of a page or of a range, ends included.

    Raises:
        ValueError: it is neither, its end lies before its beginning, or it begins below 1.
    """
    match = _CHOICE.fullmatch(given.strip())
    if match is None:
        raise ValueError("Pages are one page, as 7, or a range, as 3-9.")
    first = int(match[1])
    last = int(match[2] or first)
    if not 1 <= first <= last:
        raise ValueError("Pages count from 1, and a range ends where it begins or later.")
    return range(first, last + 1)


def pages_name(pages: range | None) -> str:
    """Return the choice as it stands in keys and file names; empty for all pages."""
    return "" if pages is None else f"{pages.start}-{pages.stop - 1}"
