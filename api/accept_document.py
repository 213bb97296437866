"""Accept a document: its bytes first, then its row, then the message about it if it has room."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from api.admission import Admission
from api.errors import ApiError
from api.estimates import guess_page_pixels, guess_pages
from api.ledger import (
    BatchClosedError,
    DocumentEntry,
    EndUpload,
    QuotaUsedUpError,
    TenantLedger,
    UploadExpiredError,
)
from api.source_upload import SourceUpload, StoredSource
from api.spared_dispatch import SplitMessages
from api.upload_admission import require_room
from api.upload_form import DocumentFields, require_open, resolve_options
from db import uploads
from db.errors import DatabaseError, DuplicateRowError, OutcomeUnknownError, RowNotFoundError
from db.models import Document
from db.states import Priority
from storage import source_object
from storage.errors import StorageError
from storage.object_store import ObjectStore
from workers.dispatch import DispatchError
from workers.ocr.options import OcrOptions
from workers.settings import WorkerSettings

log = structlog.get_logger(__name__)

UPLOAD_EXPIRES_S = 3_600.0
# The kinds of sources whose bytes are our own: they came with the request, or past it.
UPLOADED = "upload"
DIRECTLY_UPLOADED = "direct_upload"


@dataclass(frozen=True, slots=True)
class Submission:
    """What a client asks for, beside the bytes."""

    document_id: UUID
    filename: str
    fields: DocumentFields
    idempotency_key: str | None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What a document and a page of it may have at most; see the settings of these names."""

    max_pages: int
    render_max_pixels: int


def page_limits_of(settings: WorkerSettings) -> PageLimits:
    """Return the limits that the settings name."""
    return PageLimits(settings.max_pages, settings.render_max_pixels)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The document that stands for a submission; replayed: an earlier request made it."""

    entry: DocumentEntry
    is_replayed: bool


def accept_document(
    submission: Submission,
    upload: SourceUpload,
    *,
    ledger: TenantLedger,
    store: ObjectStore,
    messages: SplitMessages,
    admission: Admission,
    page_limits: PageLimits,
    dispatch_after_s: float,
) -> Acceptance:
    """Complete an upload, and make the document that the workers look for.

    The order is what makes it safe to die at any point: bytes without a row are noted, and
    removed by the sweep, and a row whose message is lost is sent by it ``dispatch_after_s``
    seconds later. One call does all of it, so that a request that is cancelled has either done
    all or nothing.

    Only an interactive document is sent at once, while the queue has room; any other is left to
    the sweep, which knows whose turn it is.

    Raises:
        ApiError: the batch is unknown or closed, or the Idempotency-Key was used for another
            request, or the system is full, or the key's quota is used up.
        DocumentError: the file is at fault.
        StorageError: the store does not take the file.
        DatabaseError: the row cannot be written; the object is deleted.
        OutcomeUnknownError: the database went away in the COMMIT, which leaves open whether the
            row stands; the object stays.
    """
    options = options_of(submission.fields, ledger)
    require_room(submission.fields.lane, submission.idempotency_key, ledger, admission)
    # The bytes are all there by now, and only the last part is not in storage: what is slow about
    # an upload lies behind it, and an hour is far more than the rest can take.
    ledger.begin_upload(submission.document_id, expires_s=UPLOAD_EXPIRES_S)
    source = upload.finish()
    document = document_of_upload(
        submission, source, options, ledger=ledger, page_limits=page_limits
    )
    return add_row(
        document,
        ledger=ledger,
        messages=messages,
        admission=admission,
        dispatch_after_s=dispatch_after_s,
        end_upload=uploads.end,
        discard=lambda: _delete(store, source.key),
        password=submission.password,
    )


def add_row(
    document: Document,
    *,
    ledger: TenantLedger,
    messages: SplitMessages,
    admission: Admission,
    dispatch_after_s: float,
    end_upload: EndUpload | None,
    discard: Callable[[], None],
    password: str | None = None,
) -> Acceptance:
    """Insert a document, and say that it waits if it is its turn.

    Args:
        document: that is not in the database yet.
        ledger: of whoever sends it.
        messages: to the workers.
        admission: counts it as open.
        dispatch_after_s: after which the sweep sends what was sent here.
        end_upload: ends its upload, in the transaction that adds it; None: there is none.
        discard: removes its bytes; called where it is certain that the row does not stand.
        password: of an encrypted file.

    Raises:
        ApiError: the Idempotency-Key was used for another request, the batch is closed, the quota
            used up, or the upload took too long.
        DatabaseError: the row cannot be written.
        DuplicateRowError: another unique rule is broken; a mistake of ours.
        OutcomeUnknownError: the row may stand or not.
    """
    # Taken before the row is written, which says whether the sweep has to look at it at once.
    with _place(document, messages) as is_sent:
        try:
            ledger.add_document(
                document,
                dispatch_after_s=dispatch_after_s if is_sent else 0,
                end_upload=end_upload,
                password=password,
            )
        except DuplicateRowError:
            discard()
            earlier = replay(document, ledger)
            if earlier is None:
                raise
            return earlier
        except OutcomeUnknownError:
            # The bytes stay in any case: deleting them could lose an accepted document.
            entry = _find(document.id, ledger)
            if entry is None:
                raise
            document = entry.document
        except DatabaseError:
            discard()
            raise
        except UploadExpiredError as error:
            discard()
            raise ApiError("busy") from error
        except BatchClosedError as error:
            discard()
            raise ApiError("batch_closed") from error
        except QuotaUsedUpError as error:
            discard()
            raise admission.refusal_of(error.use) from error
        admission.note_accepted(document)
        log.info("document accepted", document_id=str(document.id), size_bytes=document.size_bytes)
        if is_sent:
            _send(document, messages)
    return Acceptance(DocumentEntry(document, page_counts=None), is_replayed=False)


def _place(document: Document, messages: SplitMessages) -> AbstractContextManager[bool]:
    if document.priority == Priority.INTERACTIVE:
        return messages.place()
    return nullcontext(enter_result=False)


def _send(document: Document, messages: SplitMessages) -> None:
    try:
        messages.send(document.id, priority=Priority(document.priority))
    except DispatchError:
        log.warning("document left to the sweep", document_id=str(document.id))


def options_of(fields: DocumentFields, ledger: TenantLedger) -> OcrOptions:
    """Return the options that apply to a document: its own above those of its batch.

    Raises:
        ApiError: the batch is unknown or closed.
    """
    if fields.batch_id is None:
        return resolve_options({}, fields.options)
    try:
        batch, _ = ledger.batch(fields.batch_id)
    except RowNotFoundError as error:
        raise ApiError("unknown_batch") from error
    require_open(batch)
    return resolve_options(batch.options, fields.options)


def document_of_upload(
    submission: Submission,
    source: StoredSource,
    options: OcrOptions,
    *,
    ledger: TenantLedger,
    page_limits: PageLimits,
    kind: str = UPLOADED,
) -> Document:
    """Return the row of a document whose bytes are in storage; ``kind`` says how they came."""
    fields = submission.fields
    pages = guess_pages(source.media_type, source.size_bytes, max_pages=page_limits.max_pages)
    pixels = guess_page_pixels(
        source.stated_pixels, dpi=options.dpi, max_pixels=page_limits.render_max_pixels
    )
    return Document(
        id=submission.document_id,
        tenant=ledger.tenant,
        key_id=ledger.key_id,
        page_estimate=pages,
        pixel_estimate=pages * pixels,
        source={"kind": kind, "key": source.key},
        filename=submission.filename,
        media_type=source.media_type,
        size_bytes=source.size_bytes,
        sha256=source.sha256,
        options=options.to_row(),
        options_hash=options.digest(),
        batch_id=fields.batch_id,
        priority=fields.lane,
        idempotency_key=submission.idempotency_key,
        external_id=fields.external_id,
        user_metadata=fields.metadata,
    )


def replay(document: Document, ledger: TenantLedger) -> Acceptance | None:
    """Return the document that has the Idempotency-Key already, if any.

    Raises:
        ApiError: it was made by another request; the answer names the document.
    """
    key = document.idempotency_key
    earlier = None if key is None else ledger.document_of_key(key)
    if earlier is None:
        return None
    if _request_of(earlier.document) != _request_of(document):
        raise ApiError("idempotency_mismatch", extra={"document_id": str(earlier.document.id)})
    return Acceptance(earlier, is_replayed=True)


def _request_of(document: Document) -> tuple[object, ...]:
    source = document.source
    return (
        # An object is told by its name: its bytes are not known yet, or not any more.
        (source["bucket"], source["key"], source["requested_version_id"])
        if source["kind"] == source_object.KIND
        else document.sha256,
        document.options_hash,
        document.filename,
        document.batch_id,
        document.priority,
        document.external_id,
        document.user_metadata,
    )


def _find(document_id: UUID, ledger: TenantLedger) -> DocumentEntry | None:
    try:
        return ledger.document(document_id)
    except DatabaseError:
        return None


def _delete(store: ObjectStore, key: str) -> None:
    try:
        store.delete([key])
    except StorageError:
        # The answer is decided already; what stays is bytes that no row names.
        log.warning("object left behind", key=key)
