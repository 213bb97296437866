"""``pagefleet status``: where documents and batches stand."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from cli.api_views import BatchStatus, DocumentStatus
from cli.client import ApiClient
from cli.console import json_line, notices, output, print_json_line
from cli.counting import count_of
from cli.document_list import (
    Selection,
    document_line,
    list_documents,
    print_counts,
    print_documents,
    record,
)
from cli.errors import EXIT_FAILED, EXIT_USAGE, ApiError, CommandError
from cli.progress import Bar, progress_bar
from cli.secret_options import read_secret
from cli.watch import follow

_RECENT = 20
_FAILED_SHOWN = 20
NOT_FOUND = "not_found"

ApiUrlOption = Annotated[
    str | None,
    typer.Option(
        "--api-url",
        help="Address of the API. Default: PAGEFLEET_CLIENT_API_URL, else the running stack's.",
    ),
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="-",
        help="'-' asks for the API's key. Default: PAGEFLEET_CLIENT_API_KEY, else the running"
        " stack's.",
    ),
]
ApiKeyFileOption = Annotated[
    Path | None,
    typer.Option("--api-key-file", metavar="FILE", help="A file whose first line is that key."),
]


def status(  # noqa: PLR0913 - each argument is an option of the command
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[BATCH|DOCUMENT]", help="Id of a batch or a document. Default: the newest."
        ),
    ] = None,
    *,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many documents are listed at most.")
    ] = _RECENT,
    list_all: Annotated[bool, typer.Option("--all", help="List all of them.")] = False,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="List those after an earlier list, which named it."),
    ] = None,
    batch: Annotated[
        str | None, typer.Option(metavar="ID", help="List documents of this batch only.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="List those in this state only, such as failed."),
    ] = None,
    list_batches: Annotated[
        bool, typer.Option("--batches", help="List batches instead, the newest first.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until all is final; exit 1 if not all succeeded.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a document or batch, and change.")
    ] = False,
    api_url: ApiUrlOption = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
) -> None:
    """Show where documents stand: one, those of a batch, or the newest."""
    with connect(api_url, read_secret(api_key, api_key_file, label="API key")) as client:
        if list_batches:
            if which or cursor or batch or state or watch:
                raise CommandError(
                    "--batches lists batches, and the other options choose documents",
                    "Leave one of them out; --limit N and --all go with --batches.",
                    exit_code=EXIT_USAGE,
                )
            _show_batches(client, limit=None if list_all else limit, as_json=as_json)
            return
        if which is None:
            selection = Selection(
                limit=None if list_all else limit,
                cursor=cursor,
                batch=None if batch is None else _find_batch(client, parse_id(batch)),
                state=state,
            )
            _show_list(client, selection, watch=watch, as_json=as_json)
            return
        if list_all or cursor or batch or state:
            raise CommandError(
                f"{which} is one document or batch, and the other options list several",
                "Leave one of them out; --batch ID lists the documents of a batch.",
                exit_code=EXIT_USAGE,
            )
        chosen = find(client, parse_id(which))
        if isinstance(chosen, BatchStatus):
            _show_batch(client, chosen, watch=watch, as_json=as_json)
        else:
            _show_document(client, chosen, watch=watch, as_json=as_json)


def connect(api_url: str | None, api_key: str | None) -> ApiClient:
    """Return a client for the API that options, settings or a running stack name.

    Raises:
        CommandError: none of them does.
    """
    from cli.settings import find_api, name_of_key
    from cli.stack.absent import absent_stack
    from workers.settings import home_dir

    address, key = find_api(api_url, api_key)
    if address is None:
        raise absent_stack(home_dir(), otherwise="name an API with --api-url") or CommandError(
            "no API is known",
            "Start one with `pagefleet up`, or name one with --api-url.",
            exit_code=EXIT_USAGE,
        )
    return ApiClient(address, key, key_name=name_of_key(api_key))


def _show_document(
    client: ApiClient, document: DocumentStatus, *, watch: bool, as_json: bool
) -> None:
    if not watch and as_json:
        print_json_line(record(document))
    elif not watch:
        print_documents([document])
    else:
        _watch([document], client, Selection(limit=None), cursor=None, as_json=as_json)


def _show_batches(client: ApiClient, *, limit: int | None, as_json: bool) -> None:
    for batch in islice(client.batches(), limit):
        if as_json:
            print_json_line(record(batch))
        else:
            output().print(f"{batch.id}  {_batch_line(batch)}", markup=False)


def _batch_line(batch: BatchStatus) -> str:
    counted = ", ".join(f"{count} {state}" for state, count in batch.by_state.items() if count)
    line = f"{batch.name}: {batch.state}; {counted or 'no documents'}"
    return line if batch.error_message is None else f"{line}; {batch.error_message}"


def _show_list(client: ApiClient, selection: Selection, *, watch: bool, as_json: bool) -> None:
    if not watch:
        list_documents(client, selection, as_json=as_json)
        if not as_json:
            _say_if_full(client)
        return
    listings = list(selection.listings(client))
    documents = [document for listing in listings for document in listing.documents]
    _watch(documents, client, selection, cursor=listings[-1].next_cursor, as_json=as_json)


def _say_if_full(client: ApiClient) -> None:
    load = client.load()
    if load.full:
        wait = "waits" if load.pages_queued == 1 else "wait"
        notices().print(
            f"The system is full: {' and '.join(load.full)} documents are refused at the moment. "
            f"{count_of(load.pages_queued, 'page')} {wait},"
            f" {load.pages_in_flight:,} are being read, {load.pages_per_s:g} a second were done"
            " lately.",
            markup=False,
        )


def _watch(
    documents: list[DocumentStatus],
    client: ApiClient,
    selection: Selection,
    *,
    cursor: str | None,
    as_json: bool,
) -> None:
    documents = watch_documents(documents, client=client, as_json=as_json)
    if not as_json:
        print_documents(documents)
        print_counts(Counter(document.state for document in documents), selection, cursor)
    if any(document.state != "succeeded" for document in documents):
        raise typer.Exit(EXIT_FAILED)


def watch_documents(
    documents: Sequence[DocumentStatus],
    *,
    client: ApiClient,
    as_json: bool = False,
    on_look: Callable[[Sequence[DocumentStatus]], None] | None = None,
) -> list[DocumentStatus]:
    """Follow documents until all are final, with a bar over their pages; return them as they end.

    Args:
        documents: to begin with.
        client: of their API.
        as_json: whether each change goes to standard output as an object.
        on_look: told of all of them each time that the API was asked; None: nobody is.

    Raises:
        ApiError: the API refused, or has not answered for a minute.
    """
    current = {document.id: document for document in documents}
    shown: dict[UUID, str] = {}

    def refresh() -> dict[UUID, DocumentStatus]:
        for document in list(current.values()):
            if not document.is_final:
                current[document.id] = client.document(document.id)
        return current

    with progress_bar("pages") as bar:
        for known in follow(refresh, is_final=lambda all_: all(d.is_final for d in all_.values())):
            for document in known.values():
                if shown.get(document.id) != document.state:
                    shown[document.id] = document.state
                    _report_change(document, bar=bar, as_json=as_json)
            _show_pages(bar, list(known.values()))
            if on_look is not None:
                on_look(list(known.values()))
    return list(current.values())


def _report_change(document: DocumentStatus, *, bar: Bar, as_json: bool) -> None:
    if as_json:
        bar.print_result(json_line(record(document)))
    else:
        bar.print(document_line(document))


def _show_pages(bar: Bar, documents: Sequence[DocumentStatus]) -> None:
    final = sum(document.is_final for document in documents)
    # A total that still grows would let the bar jump back.
    is_total_known = all(d.pages is not None or d.is_final for d in documents)
    bar.show(
        f"{final:,} of {count_of(len(documents), 'document')}",
        sum(document.pages_done for document in documents),
        sum(document.pages or 0 for document in documents) if is_total_known else None,
    )


def _show_batch(client: ApiClient, batch: BatchStatus, *, watch: bool, as_json: bool) -> None:
    if watch:
        batch = watch_batch(client, batch, as_json=as_json)
    elif as_json:
        print_json_line(record(batch))
    if not as_json:
        console = output()
        console.print(_batch_line(batch), markup=False)
        failed = list(islice(client.documents(batch_id=batch.id, state="failed"), _FAILED_SHOWN))
        for document in failed:
            console.print(document_line(document), markup=False)
        if batch.by_state["failed"] > len(failed):
            console.print(f"and {batch.by_state['failed'] - len(failed)} more failed")
            notices().print(f"  `pagefleet status --batch {batch.id} --state failed --all`")
    if watch and batch.by_state["succeeded"] != batch.documents:
        raise typer.Exit(EXIT_FAILED)


def watch_batch(client: ApiClient, batch: BatchStatus, *, as_json: bool) -> BatchStatus:
    """Follow a batch until all that was sent is final; return where it stands then.

    Raises:
        ApiError: the API refused, or has not answered for a minute.
    """
    current = batch
    shown = ""
    with progress_bar("documents") as bar:
        for current in follow(lambda: client.batch(batch.id), is_final=_is_settled):
            bar.show(current.name, current.documents_final, current.documents or None)
            total = count_of(current.documents, "document")
            line = f"{current.documents_final:,} of {total} final"
            if as_json and shown != line:
                bar.print_result(json_line(record(current)))
            elif shown != line:
                bar.print(f"{current.name}: {line}")
            shown = line
    return current


def _is_settled(batch: BatchStatus) -> bool:
    return batch.state not in {"open", "listing", "running"}


def find(client: ApiClient, wanted: UUID) -> DocumentStatus | BatchStatus:
    """Return the document or the batch of this id.

    Raises:
        CommandError: there is neither.
        ApiError: the API refuses, or does not answer.
    """
    try:
        return client.document(wanted)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
    return _find_batch(client, wanted, kinds="document and no batch")


def _find_batch(client: ApiClient, wanted: UUID, *, kinds: str = "batch") -> BatchStatus:
    try:
        return client.batch(wanted)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
        raise CommandError(
            f"no {kinds} has the id {wanted}", "`pagefleet status` lists the newest documents."
        ) from error


def parse_id(given: str) -> UUID:
    """Return an id as it was typed.

    Raises:
        CommandError: it is none.
    """
    try:
        return UUID(given)
    except ValueError as error:
        raise CommandError(
            f"{given!r} is no id",
            "Ids look like 019ab8e2-6f3c-7c11-9d5e-0a1b2c3d4e5f. `pagefleet status` lists those of"
            " documents, `pagefleet status --batches` those of batches beside their names.",
            exit_code=EXIT_USAGE,
        ) from error
