"""What became of all files of one ``pagefleet ocr`` run, counted, and said at its end."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from cli.console import shown
from cli.counting import count_of
from cli.ocr_run import FileOutcome

# Enough to see what kind of files they are; each was named with its reason in its turn.
_NAMES_SHOWN: Final = 5
_IN_PART: Final = "pages failed"


class RunTally:
    """Counts outcomes; of 400,000 files it keeps the numbers and a few names.

    Args:
        files: of the run, those that are skipped included.
        skipped: of them, as an earlier run has done them.
    """

    def __init__(self, *, files: int, skipped: int = 0) -> None:
        self.files = files
        self.skipped = skipped
        self.pages = 0
        self._started_s: float | None = None
        self._states: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._names: defaultdict[str, list[Path]] = defaultdict(list)

    @property
    def read(self) -> int:
        """Files whose turn has come, whatever became of them."""
        return self._states.total()

    @property
    def not_succeeded(self) -> int:
        return self.read - self._states["succeeded"]

    def start(self) -> None:
        """Let the clock run: what comes before, such as loading the models, is no reading."""
        self._started_s = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long files have been read; 0 where none has begun."""
        return 0.0 if self._started_s is None else time.monotonic() - self._started_s

    def add(self, outcome: FileOutcome) -> None:
        self._states[outcome.state] += 1
        self.pages += outcome.pages - outcome.pages_skipped
        if outcome.state == "succeeded":
            return
        reason = outcome.error_code or _IN_PART
        self._reasons[reason] += 1
        if len(self._names[reason]) < _NAMES_SHOWN:
            self._names[reason].append(outcome.path)

    def pace(self, pages_under_way: int = 0) -> str:
        """Return pages so far and their rate."""
        pages = self.pages + pages_under_way
        return f"{count_of(pages, 'page')}, {pages / max(self.seconds, 1e-3):.1f}/s"

    def summary(self) -> Iterator[str]:
        """Yield lines for people: how many files, and why some of them failed."""
        parts = [
            f"{self._states['succeeded']:,} read",
            f"{self._states['partly_succeeded']:,} read in part",
            f"{self._states['failed']:,} failed",
            f"{self.skipped:,} skipped, their results are there",
            f"{self.files - self.skipped - self.read:,} not begun",
        ]
        told = [part for part in parts if not part.startswith("0 ")]
        took = timedelta(seconds=round(self.seconds))
        yield f"{count_of(self.files, 'file')}: {', '.join(told)}; {self.pace()}, {took}"
        for reason, count in self._reasons.most_common():
            names = ", ".join(shown(path) for path in self._names[reason])
            more = " and others" if count > len(self._names[reason]) else ""
            yield f"  {reason}: {count:,} ({names}{more})"
