"""Why files were not read: a line for each kind of error, with its remedy."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cli.console import shown
from cli.counting import count_of


class Reasons:
    """Counts errors; of any number of files it keeps one message a kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._messages: dict[str, str] = {}

    def add(self, code: str | None, message: str | None) -> None:
        """Count an error; nothing happens where there is none."""
        if code is None:
            return
        self._counts[code] += 1
        if message:
            # Of two files that say it differently the first does as well.
            self._messages.setdefault(code, message)

    def lines(self) -> Iterator[str]:
        """Yield a line a kind, the most frequent first: how many files, and what to do."""
        for code, count in self._counts.most_common():
            message = self._messages.get(code)
            said = f": {shown(message)}" if message else ""
            yield f"  {code}, {count_of(count, 'file')}{said}"


def error_message(record: Mapping[str, Any]) -> str | None:
    """Return what the API reports of why a document failed; None of an earlier release."""
    message: str | None = record.get("error_message")
    return message
