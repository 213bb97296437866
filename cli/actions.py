"""``pagefleet cancel``, ``retry`` and ``delete``: documents by their ids, or those of a batch."""

from collections.abc import Callable, Iterator
from typing import Annotated
from uuid import UUID

import typer

from cli.api_views import DocumentStatus
from cli.client import ApiClient
from cli.console import notices, output, print_json_line
from cli.counting import count_of
from cli.document_list import document_line, record
from cli.errors import EXIT_FAILED, EXIT_USAGE, ApiError, CommandError
from cli.secret_options import read_secret
from cli.status import (
    NOT_FOUND,
    ApiKeyFileOption,
    ApiKeyOption,
    ApiUrlOption,
    connect,
    parse_id,
)

IdArguments = Annotated[
    list[str] | None, typer.Argument(metavar="[ID…]", help="Ids of documents.", show_default=False)
]
BatchOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Those of this batch instead of single ones.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a document.")]
FailedOption = Annotated[
    bool,
    typer.Option("--failed", help="Of the batch, only those that failed in part or whole."),
]

_FAILED_STATES = ("failed", "partly_succeeded")
# These say the same of the same bytes and options, however often they are read.
_OF_THE_FILE = frozenset({
    "damaged",
    "empty",
    "encrypted",
    "exceeds_max_pages",
    "no_such_page",
    "unsupported_media_type",
})
_LOOKED_AT = 100

# What is done to a document; it returns where the document stands then, or None.
_Action = Callable[[UUID], DocumentStatus | None]


def cancel(
    ids: IdArguments = None,
    *,
    batch: BatchOption = None,
    as_json: JsonOption = False,
    api_url: ApiUrlOption = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
) -> None:
    """End documents that are not final; what was read of them is kept for a retry.

    With --batch the batch takes no further documents.
    """
    batch_id, document_ids = _chosen(ids, batch)
    with connect(api_url, read_secret(api_key, api_key_file, label="API key")) as client:
        if batch_id is None:
            _do("cancelled", iter(document_ids), client.cancel_document, as_json=as_json)
            return
        status = client.cancel_batch(batch_id)
        if as_json:
            print_json_line(record(status))
        else:
            left = status.documents - status.documents_final
            ending = f"{count_of(left, 'document')} {'is' if left == 1 else 'are'} ending"
            output().print(f"{status.name}: cancelled; {ending}", markup=False)


def retry(
    ids: IdArguments = None,
    *,
    batch: BatchOption = None,
    failed: FailedOption = False,
    as_json: JsonOption = False,
    api_url: ApiUrlOption = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
) -> None:
    """Read again what was not read of documents that failed, in part or whole, or were cancelled.

    Pages that were read are kept, and so is an earlier result until the new one is there. One id
    may be that of a batch, as with --batch: its documents are sent again, step by step.
    """
    batch_id, document_ids = _chosen(ids, batch, failed=failed, takes_batch=True)
    with connect(api_url, read_secret(api_key, api_key_file, label="API key")) as client:
        if batch_id is None and len(document_ids) == 1 and _is_batch(client, document_ids[0]):
            batch_id = document_ids[0]
        if batch_id is not None:
            _retry_batch(client, batch_id, failed=failed, as_json=as_json)
            return
        _require_batch(failed=failed)
        _do("sent again", iter(document_ids), client.retry_document, as_json=as_json)


def delete(
    ids: IdArguments = None,
    *,
    batch: BatchOption = None,
    failed: FailedOption = False,
    is_sure: Annotated[bool, typer.Option("--yes", help="With --batch: do not ask.")] = False,
    as_json: JsonOption = False,
    api_url: ApiUrlOption = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
) -> None:
    """Delete documents with their files and results, for good, whatever state they are in."""
    batch_id, document_ids = _chosen(ids, batch, failed=failed)
    with connect(api_url, read_secret(api_key, api_key_file, label="API key")) as client:
        if batch_id is not None:
            states = _FAILED_STATES if failed else (None,)
            document_ids = list(_ids_of(client, batch_id, states))
            if not is_sure:
                typer.confirm(
                    f"Delete {count_of(len(document_ids), 'document')} for good?",
                    abort=True,
                    err=True,
                )
        _do("deleted", iter(document_ids), client.delete_document, as_json=as_json)


def _retry_batch(client: ApiClient, batch_id: UUID, *, failed: bool, as_json: bool) -> None:
    failures = _failures_before(client, batch_id)
    status = client.retry_batch(batch_id, only_failed=failed)
    if as_json:
        print_json_line(record(status))
        return
    left = status.documents - status.documents_final
    output().print(
        f"{status.name}: {status.state}; {left:,} of "
        f"{count_of(status.documents, 'document')} {'is' if left == 1 else 'are'} open"
        + (", and further ones are sent again" if status.is_retrying else ""),
        markup=False,
    )
    if failures and failures <= _OF_THE_FILE:
        notices().print(
            f"What failed did so for its files ({', '.join(sorted(failures))}), and will again:"
            " send these anew, put right or with their password.",
            markup=False,
        )


def _failures_before(client: ApiClient, batch_id: UUID) -> set[str]:
    """Return the errors of a batch; none where there are too many to look at for a hint."""
    codes: set[str] = set()
    for state in _FAILED_STATES:
        listing = next(client.listings(limit=_LOOKED_AT, batch_id=batch_id, state=state))
        if listing.next_cursor is not None:
            return set()
        codes |= {document.error_code or "" for document in listing.documents}
    return codes


def _is_batch(client: ApiClient, wanted: UUID) -> bool:
    """Say whether an id is that of a batch, and of no document."""
    try:
        client.document(wanted)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
    else:
        return False
    try:
        client.batch(wanted)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
        return False
    return True


def _require_batch(*, failed: bool) -> None:
    if failed:
        raise CommandError(
            "--failed chooses among the documents of a batch",
            "Add --batch ID, or leave it out.",
            exit_code=EXIT_USAGE,
        )


def _chosen(
    ids: list[str] | None, batch: str | None, *, failed: bool = False, takes_batch: bool = False
) -> tuple[UUID | None, list[UUID]]:
    """Return the batch, or the documents, that the command line names.

    Args:
        ids: as they were typed.
        batch: likewise.
        failed: whether only failed documents of a batch are meant.
        takes_batch: whether one of the ids may be that of a batch.

    Raises:
        CommandError: it names neither, or both, or what is no id.
    """
    if bool(ids) == (batch is not None):
        raise CommandError(
            "either ids of documents or --batch ID says which are meant",
            "`pagefleet status` lists documents, and `pagefleet status --batch ID` a batch's.",
            exit_code=EXIT_USAGE,
        )
    if batch is None and not (takes_batch and len(ids or []) == 1):
        _require_batch(failed=failed)
    return None if batch is None else parse_id(batch), [parse_id(each) for each in ids or []]


def _ids_of(client: ApiClient, batch_id: UUID, states: tuple[str | None, ...]) -> Iterator[UUID]:
    """Yield documents of a batch; to be read to the end before one of them changes its state."""
    client.batch(batch_id)  # an unknown batch is an error, and no empty list
    for state in states:
        for document in client.documents(batch_id=batch_id, state=state):
            yield document.id


def _do(done: str, document_ids: Iterator[UUID], act: _Action, *, as_json: bool) -> None:
    """Do something to each document, and go on where one is refused.

    Raises:
        ApiError: the API does not answer.
        Exit: some were refused; which and why was shown.
    """
    counts = {True: 0, False: 0}
    for document_id in document_ids:
        error = None
        status = None
        try:
            status = act(document_id)
        except ApiError as refused:
            if refused.status is None:
                raise
            error = refused
        counts[error is None] += 1
        _show(document_id, status, error, done=done, as_json=as_json)
    if not as_json:
        output().print(f"{count_of(counts[True], 'document')} {done}", markup=False)
    if counts[False]:
        raise typer.Exit(EXIT_FAILED)


def _show(
    document_id: UUID,
    status: DocumentStatus | None,
    error: ApiError | None,
    *,
    done: str,
    as_json: bool,
) -> None:
    if as_json:
        known = {"id": str(document_id)} if status is None else record(status)
        code = None if error is None else error.code
        print_json_line({**known, "done": error is None, "refused": code})
    elif error is not None:
        notices().print(f"{document_id}: {error.message}", markup=False)
    elif status is None:
        output().print(f"{done}  {document_id}", markup=False)
    else:
        output().print(document_line(status), markup=False)
