"""The report of a run: every file once, in CSV for people and in NDJSON for programs."""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from cli.console import as_text, notices, output, shown
from cli.errors import CommandError
from cli.ingest import journal as states
from cli.ingest.journal import Journal, Outcome
from cli.ingest.reasons import Reasons
from workers.ocr.exports.escaping import harmless_cell

COLUMNS: Final = (
    "path",
    "state",
    "document_id",
    "error_code",
    "message",
    "external_id",
    "pages",
    "seconds",
    "size_bytes",
    "sha256",
    "path_bytes",
)
# What a file is whose document somebody has deleted meanwhile.
_DELETED: Final = "deleted"
# Of the files that were sent.
FAILED_DOCUMENTS: Final = frozenset({"failed", "partly_succeeded", "cancelled"})
_NOT_SENT: Final = frozenset({states.REFUSED, states.FAILED, states.PENDING})
_FAILURES: Final = _NOT_SENT | FAILED_DOCUMENTS
# Of what failed, named on the terminal too.
SHOWN_FAILURES: Final = 20


@dataclass(slots=True)
class Written:
    """A report that was written; ``by_state`` counts its files, ``reasons`` those that failed."""

    csv: Path
    ndjson: Path
    by_state: Counter[str] = field(default_factory=Counter)
    reasons: Reasons = field(default_factory=Reasons)

    @property
    def files(self) -> int:
        return self.by_state.total()

    @property
    def failures(self) -> int:
        """Files that were not sent though they should have been, or whose documents failed."""
        return sum(self.by_state[state] for state in _FAILURES)

    def add(self, record: Mapping[str, Any]) -> None:
        """Count a file, by what is reported of it; ``message`` says why it failed."""
        self.by_state[record["state"]] += 1
        if record["state"] in _FAILURES:
            self.reasons.add(record["error_code"], record["message"])

    def show_places(self, batch_id: UUID) -> None:
        """Say where the report lies, and by which id the batch is asked for."""
        places = ", ".join(shown(path.absolute()) for path in (self.csv, self.ndjson))
        output().print(f"batch {batch_id}; report: {places}", markup=False)

    def show_reasons(self) -> None:
        """Say why files failed, and what to do."""
        for line in self.reasons.lines():
            notices().print(line, markup=False)


def write_report(journal: Journal, stem: Path) -> Written:
    """Write both files, each whole or not at all.

    Args:
        journal: knows what became of the files, and has learned of their documents.
        stem: the files are called so, with an ending of their own.

    Raises:
        CommandError: they cannot be written.
    """
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("csv", "ndjson")]
    written = Written(csv=paths[0], ndjson=paths[1])
    partial = [path.with_name(f".{path.name}.partial") for path in paths]
    try:
        with ExitStack() as stack:
            as_csv, as_lines = (
                stack.enter_context(path.open("w", encoding="utf-8", newline=""))
                for path in partial
            )
            writer = csv.writer(as_csv)
            writer.writerow(COLUMNS)
            for record in records(journal):
                written.add(record)
                writer.writerow([
                    harmless_cell(cell) if isinstance(cell, str) else cell
                    for cell in record.values()
                ])
                as_lines.write(json.dumps(record) + "\n")
        for source, target in zip(partial, paths, strict=True):
            source.replace(target)
    except OSError as error:
        raise CommandError(
            f"the report cannot be written to {stem}: {error.strerror}",
            "Name another place with --report; run again, and nothing is sent twice.",
        ) from error
    return written


def records(journal: Journal) -> Iterator[dict[str, Any]]:
    """Yield what is reported of each file, by column."""
    for outcome in journal.outcomes():
        yield dict(zip(COLUMNS, _values(outcome), strict=True))


def _values(outcome: Outcome) -> tuple[object, ...]:
    path = outcome.path.replace(b"\0", b" ").decode("utf-8", "surrogateescape")
    text = as_text(path)
    state, pages, seconds = outcome.state, None, None
    code, message = outcome.code, outcome.message
    if state == states.REJECTED:
        state = states.REFUSED
    elif state == states.SENT and outcome.document is None:
        state = _DELETED
    elif state == states.SENT and outcome.document is not None:
        state, pages, code, message, seconds = outcome.document
    return (
        text,
        state,
        outcome.document_id if outcome.state in {states.SENT, states.DUPLICATE} else None,
        code,
        message,
        outcome.external_id,
        pages,
        seconds,
        outcome.size_bytes,
        outcome.sha256,
        # Two names that differ in bytes that are no UTF-8 look the same.
        outcome.path.hex() if text != path else None,
    )
