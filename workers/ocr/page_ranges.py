"""Which pages of a document are to be read: ``1-3,7``, as people count them."""

import re
from typing import Final

MAX_PAGE: Final = 999_999
MAX_RANGES: Final = 100
"""After joining those that touch."""

_RANGE: Final = r"[1-9][0-9]{0,5}(-[1-9][0-9]{0,5})?"
PATTERN: Final = rf"^{_RANGE}(,{_RANGE})*$"
MAX_LENGTH: Final = 2_000

_RANGES: Final = re.compile(PATTERN, re.ASCII)


def normalized(given: str) -> str:
    """Return the same pages in order, each once, in as few ranges as there can be.

    Raises:
        ValueError: it is no list of pages and ranges, or has too many of them.
    """
    joined = _joined(_parsed(given))
    if len(joined) > MAX_RANGES:
        raise ValueError(f"there are more than {MAX_RANGES} ranges of pages")
    return ",".join(
        f"{each.start}" if len(each) == 1 else f"{each.start}-{each.stop - 1}" for each in joined
    )


def indexes_within(ranges: str, page_count: int) -> list[int]:
    """Return the 0-based positions of those of the pages that a document of so many has."""
    return [
        number - 1
        for each in _parsed(ranges)
        for number in range(each.start, min(each.stop, page_count + 1))
    ]


def last_page(ranges: str) -> int:
    """Return the highest number among the pages."""
    return max(each.stop - 1 for each in _parsed(ranges))


def _parsed(ranges: str) -> list[range]:
    if _RANGES.fullmatch(ranges) is None:
        raise ValueError("pages are pages and ranges with commas, as 1-3,7")
    parsed = []
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        parsed.append(range(int(first), int(last or first) + 1))
    if not all(parsed):
        raise ValueError("a range of pages ends where it begins or later")
    return parsed


def _joined(ranges: list[range]) -> list[range]:
    joined: list[range] = []
    for each in sorted(ranges, key=lambda one: one.start):
        if joined and each.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, each.stop))
        else:
            joined.append(each)
    return joined
