"""Progress: a bar on a terminal, plain lines in a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cli.console import notices, write_line

# The time left is estimated over this long, as one file may take minutes.
_SPEED_PERIOD_S = 600.0
# Between two of the plain lines that take the place of a bar.
LINE_EVERY_S = 10.0


def is_terminal() -> bool:
    """Tell whether somebody watches standard error."""
    return sys.stderr.isatty()


@dataclass(slots=True)
class Bar:
    """One bar; without a terminal it shows nothing, and its owner writes plain lines."""

    _progress: Progress | None
    _task: TaskID | None

    @property
    def is_shown(self) -> bool:
        return self._progress is not None

    def show(self, label: str, done: int, total: int | None, *, note: str = "") -> None:
        """Set what is worked on, and how far it is.

        Args:
            label: what is worked on.
            done: of ``total``.
            total: None: not known yet.
            note: stands behind the bar.
        """
        if self._progress is None or self._task is None:
            return
        self._progress.update(
            self._task, description=escape(label), completed=done, total=total, note=escape(note)
        )

    def print_result(self, line: str) -> None:
        """Write a line to standard output; above the bar where both go to one terminal."""
        if self._progress is not None and sys.stdout.isatty():
            self._progress.console.print(escape(line))
        else:
            write_line(line)

    def print(self, line: str) -> None:
        """Write a line to standard error, above the bar where there is one."""
        console = notices() if self._progress is None else self._progress.console
        console.print(escape(line))


@contextmanager
def progress_bar(unit: str) -> Iterator[Bar]:
    """Show one bar on standard error while the block runs.

    Args:
        unit: what is counted, in the plural.
    """
    if not is_terminal():
        yield Bar(None, None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=notices(),
        transient=True,
        speed_estimate_period=_SPEED_PERIOD_S,
    ) as progress:
        yield Bar(progress, progress.add_task("", total=None, note=""))
