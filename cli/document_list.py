"""Lists of documents for ``pagefleet status``, which say what they leave out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from uuid import UUID

from rich.markup import escape
from rich.table import Table

from cli.api_views import BatchStatus, DocumentStatus, Listing
from cli.client import ApiClient
from cli.console import notices, output, print_json_line
from cli.counting import count_of

_COLORS = {"succeeded": "green", "partly_succeeded": "yellow", "failed": "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which documents are listed, newest first.

    Attributes:
        limit: how many at most; None for all.
        cursor: where an earlier list left off; None for the newest.
        batch: only those of it.
        state: only those in it.
    """

    limit: int | None
    cursor: str | None = None
    batch: BatchStatus | None = None
    state: str | None = None

    def listings(self, client: ApiClient) -> Iterator[Listing]:
        """Yield what the API has of it, piece by piece."""
        return client.listings(
            limit=self.limit,
            cursor=self.cursor,
            batch_id=None if self.batch is None else self.batch.id,
            state=self.state,
        )

    @property
    def total(self) -> int | None:
        """How many there are, listed or not; the API counts those of a batch alone."""
        if self.batch is None:
            return None
        return self.batch.documents if self.state is None else self.batch.by_state.get(self.state)


def list_documents(client: ApiClient, selection: Selection, *, as_json: bool) -> None:
    """Print documents as they come, and what is left out."""
    states: Counter[str] = Counter()
    cursor: str | None = None
    for listing in selection.listings(client):
        if as_json:
            for document in listing.documents:
                print_json_line(record(document))
        else:
            print_documents(listing.documents, with_heading=not states)
        states.update(document.state for document in listing.documents)
        cursor = listing.next_cursor
    if not as_json:
        print_counts(states, selection, cursor)
    elif cursor is not None:
        print_json_line({
            "listed": states.total(),
            "total": selection.total,
            "next_cursor": cursor,
        })


def print_documents(
    documents: tuple[DocumentStatus, ...] | list[DocumentStatus], *, with_heading: bool = True
) -> None:
    """Print documents: a table on a terminal, else a line each."""
    console = output()
    if console.is_terminal:
        console.print(_table(documents, with_heading=with_heading))
        return
    for document in documents:
        console.print(document_line(document), markup=False)


def print_counts(states: Counter[str], selection: Selection, cursor: str | None) -> None:
    """Print how many documents were listed, of how many, and how to see the others."""
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    if cursor is None:
        number = count_of(states.total(), "document")
        output().print(f"{number}: {counted or 'none yet'}", markup=False)
        return
    listed = (
        count_of(states.total(), "document")
        if selection.total is None
        else f"{states.total():,} of {count_of(selection.total, 'document')}"
    )
    name = "" if selection.batch is None else f" of {selection.batch.name}"
    output().print(
        f"{listed}{name}, newest first: {counted}. There are older ones.",
        markup=False,
    )
    notices().print(
        f"  --all or --limit N lists more, --cursor {cursor} those after these, --batch ID one"
        " batch, --state STATE one state",
        markup=False,
    )


def document_line(document: DocumentStatus) -> str:
    """Return a document as one plain line."""
    error = f"  {document.error_code}: {document.error_message}" if document.error_code else ""
    return f"{document.state}  {pages_of(document)}  {document.filename}  {document.id}{error}"


def pages_of(document: DocumentStatus) -> str:
    """Return how many pages are done, of how many."""
    if document.pages is None:
        return "-"
    failed = f" ({document.pages_failed} failed)" if document.pages_failed else ""
    truncated = " truncated" if document.truncated else ""
    return f"{document.pages_done}/{document.pages}{failed}{truncated}"


def record(status: DocumentStatus | BatchStatus) -> dict[str, object]:
    """Return where a document or a batch stands, for ``--json``."""
    return {
        name: str(value) if isinstance(value, UUID) else value
        for name, value in asdict(status).items()
    }


def _table(
    documents: tuple[DocumentStatus, ...] | list[DocumentStatus], *, with_heading: bool
) -> Table:
    table = Table(box=None, pad_edge=False, show_header=with_heading)
    for heading in ("state", "pages", "file", "id", "error"):
        table.add_column(heading)
    for document in documents:
        color = _COLORS.get(document.state, "default")
        table.add_row(
            f"[{color}]{document.state}[/{color}]",
            pages_of(document),
            escape(document.filename),
            str(document.id),
            document.error_code or "",
        )
    return table
