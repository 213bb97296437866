"""``pagefleet export``: results from a running API into a folder, in any format."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.api_views import BatchStatus, DocumentStatus
from cli.client import ApiClient
from cli.console import json_line, notices, shown
from cli.counting import count_of
from cli.errors import EXIT_FAILED, EXIT_USAGE, ApiError, CommandError
from cli.format_option import FormatOption, known_format
from cli.ingest.summary import show_duplicates
from cli.local_names import local_name
from cli.progress import Bar, progress_bar
from cli.secret_options import read_secret
from cli.status import ApiKeyFileOption, ApiKeyOption, ApiUrlOption, connect, find, parse_id
from workers.ocr.exports.formats import FORMATS, ExportFormat
from workers.ocr.exports.page_choice import parse_pages

# So many are asked for before the first is waited for: workers make several at a time.
_ASKED_AT_ONCE = 16
# These are the document's, and cost no other one its turn. 500 too: its result may be gone.
_OF_DOCUMENT = frozenset({404, 409, 422, 500})
# These are the system's: asked again for so long.
_OF_SYSTEM = frozenset({429, 503})
_MOST_REFUSALS = 20
_REFUSED_PAUSE_S = 5.0
# An answer that breaks off while the API goes on answering.
_MOST_BREAKS = 3
_BREAK_PAUSE_S = 1.0


@dataclass(slots=True)
class _Wanted:
    """A document whose result is to be fetched, and when it is to be asked for again."""

    document: DocumentStatus
    output: Path
    not_before_s: float = 0.0
    refusals: int = 0
    breaks: int = 0


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one document: ``written``, ``skipped`` or ``failed``."""

    document: DocumentStatus
    state: str
    output: Path | None = None
    code: str | None = None
    message: str | None = None

    def as_record(self) -> dict[str, object]:
        error = {"code": self.code, "message": self.message}
        return {
            "document_id": str(self.document.id),
            "filename": self.document.filename,
            "state": self.state,
            "output": None if self.output is None else str(self.output),
            "error": error if self.code else None,
        }

    def as_line(self) -> str:
        name = shown(self.document.filename)
        if self.state == "failed":
            return f"{name} ({self.document.id}): {self.code}: {shown(self.message or '')}"
        return f"{name}: {self.state} -> {shown(self.output or '')}"


def export(  # noqa: PLR0913 - each argument is an option of the command
    which: Annotated[
        str, typer.Argument(metavar="BATCH|DOCUMENT", help="Id of a batch or a document.")
    ],
    *,
    output_format: FormatOption = "json",
    out_dir: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where results go.")
    ] = Path(),
    pages: Annotated[
        str | None, typer.Option(metavar="N|N-M", help="One page or a range. Default: all.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Fetch again what an earlier run has written.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a document.")] = False,
    api_url: ApiUrlOption = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
) -> None:
    """Fetch the results of a document, or of all documents of a batch, into a folder.

    What an earlier run has written is left out, so the same command goes on where it was stopped.
    """
    chosen = known_format(output_format)
    if pages is not None:
        _require_pages(pages)
    with connect(api_url, read_secret(api_key, api_key_file, label="API key")) as client:
        found = find(client, parse_id(which))
        with progress_bar("documents") as bar:
            failed = _export_all(
                client,
                found,
                _Fetch(client, out_dir, chosen, pages, overwrite=overwrite),
                bar=bar,
                as_json=as_json,
            )
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _require_pages(given: str) -> None:
    try:
        parse_pages(given)
    except ValueError as error:
        raise CommandError(
            f"{shown(given)!r} names no pages", str(error), exit_code=EXIT_USAGE
        ) from error


class _Fetch:
    """Fetches documents, several of them under way at a time."""

    def __init__(
        self,
        client: ApiClient,
        out_dir: Path,
        chosen: ExportFormat,
        pages: str | None,
        *,
        overwrite: bool,
    ) -> None:
        self._client = client
        self._out_dir = out_dir
        self._format = chosen
        self._pages = pages
        self._overwrite = overwrite

    def outcomes(self, documents: Iterator[DocumentStatus]) -> Iterator[_Outcome]:
        """Yield what becomes of each document, in the order in which that is known."""
        waiting: deque[_Wanted] = deque()
        for document in documents:
            wanted = _Wanted(document, self._out_dir / self._name_of(document))
            if not self._overwrite and wanted.output.is_file():
                yield _Outcome(document, "skipped", wanted.output)
                continue
            outcome = self._try(wanted)
            if outcome is not None:
                yield outcome
                continue
            waiting.append(wanted)
            while len(waiting) >= _ASKED_AT_ONCE:
                yield from self._turn(waiting)
        while waiting:
            yield from self._turn(waiting)

    def _turn(self, waiting: deque[_Wanted]) -> Iterator[_Outcome]:
        """Ask for the one that has waited longest, and put it back where it is not made yet."""
        wanted = waiting.popleft()
        threading.Event().wait(max(0.0, wanted.not_before_s - time.monotonic()))
        outcome = self._try(wanted)
        if outcome is None:
            waiting.append(wanted)
        else:
            yield outcome

    def _try(self, wanted: _Wanted) -> _Outcome | None:
        """Fetch one document; None: it is being made.

        Raises:
            ApiError: the API is away, or does not know the key.
            CommandError: the file cannot be written.
        """
        document = wanted.document
        try:
            pause_s = self._client.fetch_result(
                document.id, wanted.output, name=self._format, pages=self._pages
            )
        except ApiError as error:
            if error.status in _OF_DOCUMENT:
                code, message = error.of_document or (error.code, error.message)
                return _Outcome(document, "failed", code=code, message=message)
            pause_s = self._pause_after(error, wanted)
            if wanted.breaks == _MOST_BREAKS:
                message = "The answer broke off each time. The API's log says why."
                return _Outcome(document, "failed", code="broken_off", message=message)
        except OSError as error:
            raise CommandError(
                f"{shown(wanted.output)} cannot be written: {error.strerror or error}",
                "Choose another folder with -o DIR, or free some space.",
            ) from error
        if pause_s is None:
            return _Outcome(document, "written", wanted.output)
        wanted.not_before_s = time.monotonic() + pause_s
        return None

    def _pause_after(self, error: ApiError, wanted: _Wanted) -> float:
        """Return in how many seconds to ask again; counts how often it came to that.

        Raises:
            ApiError: the API is away, refuses everything, or says the same for too long.
        """
        if error.status is None:
            try:
                self._client.require_ready()
            except ApiError as unready:
                if unready.status is None:
                    raise
                error = unready
            else:
                wanted.breaks += 1
                return _BREAK_PAUSE_S
        if error.status not in _OF_SYSTEM or wanted.refusals == _MOST_REFUSALS:
            raise error
        wanted.refusals += 1
        return error.retry_after_s or _REFUSED_PAUSE_S

    def _name_of(self, document: DocumentStatus) -> str:
        part = f".pages-{self._pages}" if self._pages else ""
        return local_name(
            document.filename, f".{document.id}{part}{FORMATS[self._format].extension}"
        )


def _export_all(
    client: ApiClient,
    found: DocumentStatus | BatchStatus,
    fetch: _Fetch,
    *,
    bar: Bar,
    as_json: bool,
) -> int:
    """Fetch all that was found, say what became of each, and return how many failed."""
    if isinstance(found, BatchStatus):
        documents, total = client.documents(batch_id=found.id), found.documents
    else:
        documents, total = iter([found]), 1
    counts = {"written": 0, "skipped": 0, "failed": 0}
    bar.show("exporting", 0, total)
    for outcome in fetch.outcomes(documents):
        counts[outcome.state] += 1
        if as_json:
            bar.print_result(json_line(outcome.as_record()))
        elif outcome.state == "failed":
            bar.print(outcome.as_line())
        elif outcome.state == "written":
            bar.print_result(outcome.as_line())
        bar.show("exporting", sum(counts.values()), total)
    summed = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    counted = count_of(sum(counts.values()), "document")
    notices().print(f"{counted}: {summed or 'none'}", markup=False)
    if isinstance(found, BatchStatus) and not as_json:
        show_duplicates(found.duplicates)
    return counts["failed"]
