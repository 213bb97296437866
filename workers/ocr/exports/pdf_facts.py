"""What a searchable PDF says about the reading it was made of, in its information dictionary."""

from collections.abc import Iterable, Mapping
from typing import Final

from workers.ocr.exports.page_view import Header, Page

_MOST_LISTED: Final = 1_000


class PageFacts:
    """Which of the pages, taken one by one, failed, were left out or were cut off."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._failed: list[int] = []
        self._skipped: list[int] = []
        self._truncated: list[int] = []

    def add(self, page: Page) -> None:
        """Look at one page object."""
        number = page["page_number"]
        if page["state"] == "failed":
            self._failed.append(number)
        elif page["state"] == "skipped":
            self._skipped.append(number)
        elif page["truncated"]:
            self._truncated.append(number)

    def as_texts(self) -> dict[str, str]:
        """Return the facts by their keys in the information dictionary."""
        facts = {
            "PagefleetState": str(self._header["state"]),
            "PagefleetModelVersion": str(self._header["model_version"] or ""),
        }
        if self._failed:
            facts["PagefleetFailedPages"] = _listed(self._failed)
        if self._skipped:
            facts["PagefleetSkippedPages"] = _listed(self._skipped)
        if self._truncated:
            facts["PagefleetTruncatedPages"] = _listed(self._truncated)
        return facts


def info_entries(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts as PDF strings."""
    return {key: f"<feff{text.encode('utf-16-be').hex()}>" for key, text in facts.items()}


def _listed(numbers: Iterable[int]) -> str:
    listed = list(numbers)
    more = " …" if len(listed) > _MOST_LISTED else ""
    return " ".join(map(str, listed[:_MOST_LISTED])) + more
