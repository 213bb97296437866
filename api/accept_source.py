"""Accept a document whose bytes lie in a bucket of the user's: its row now, its bytes later.

A worker copies them before it splits the document (``workers.copy_source``): a request would
outlast its time limit, and an event would hold up all that wait behind it.
"""

from dataclasses import dataclass
from uuid import UUID

from api.accept_document import Acceptance, PageLimits, add_row, options_of, replay
from api.admission import Admission
from api.errors import ApiError
from api.estimates import guess_page_pixels, guess_pages
from api.filenames import MAX_LENGTH, safe_filename
from api.ledger import TenantLedger
from api.place_settings import AllowedSources
from api.spared_dispatch import SplitMessages
from api.upload_admission import require_room
from api.upload_form import DocumentFields, UploadFields
from db.models import Document
from storage import source_object
from storage.object_store import ObjectStore
from storage.source_object import SourceAddress, SourceObject
from workers.ocr.errors import EmptyDocumentError, FileTooLargeError
from workers.ocr.formats import MediaType
from workers.ocr.options import OcrOptions

UNREAD_MEDIA_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class SourceSubmission:
    """What a client asks for, and where the bytes lie."""

    document_id: UUID
    address: SourceAddress
    fields: UploadFields
    idempotency_key: str | None


@dataclass(frozen=True, slots=True)
class SourceRules:
    """Which objects become documents; see the settings of these names."""

    allowed: AllowedSources
    max_file_bytes: int
    page_limits: PageLimits


def accept_source(
    submission: SourceSubmission,
    *,
    ledger: TenantLedger,
    store: ObjectStore,
    rules: SourceRules,
    messages: SplitMessages,
    admission: Admission,
    dispatch_after_s: float,
) -> Acceptance:
    """Make the document of an object, as it stands there now.

    Raises:
        ApiError: the object lies nowhere that is allowed, the batch is unknown or closed, the
            Idempotency-Key was used for another request, the system is full, or a quota used up.
        DocumentError: the object is empty or too large.
        SourceNotFoundError: there is no such object.
        SourceRefusedError: the store does not hand it out.
        StorageUnavailableError: the store is away.
        DatabaseError: the row cannot be written.
    """
    require_allowed(submission.address, rules.allowed, tenant=ledger.tenant)
    options = options_of(submission.fields, ledger)

    def document_of_submission(source: SourceObject) -> Document:
        return document_of(
            source,
            submission.fields,
            options,
            document_id=submission.document_id,
            tenant=ledger.tenant,
            key_id=ledger.key_id,
            page_limits=rules.page_limits,
            idempotency_key=submission.idempotency_key,
        )

    # Before the object is looked at: it may be gone, or another one, when a request is repeated.
    unread = source_object.unseen(submission.address)
    if (earlier := replay(document_of_submission(unread), ledger)) is not None:
        return earlier
    require_room(submission.fields.lane, submission.idempotency_key, ledger, admission)
    source = source_object.describe(store, submission.address)
    require_size(source, max_bytes=rules.max_file_bytes)
    return add_row(
        document_of_submission(source),
        ledger=ledger,
        messages=messages,
        admission=admission,
        dispatch_after_s=dispatch_after_s,
        end_upload=None,
        discard=lambda: None,
        password=submission.fields.stated_password,
    )


def require_allowed(address: SourceAddress, allowed: AllowedSources, *, tenant: str) -> None:
    """Refuse an object that lies outside of what a tenant may read.

    A key with the steps of a path is refused as well: some stores walk them, out of the prefix.

    Raises:
        ApiError: it does.
    """
    if not {".", ".."}.isdisjoint(address.key.split("/")) or not any(
        place.holds(address.bucket, address.key)
        and (place.tenants is None or tenant in place.tenants)
        for place in allowed
    ):
        raise ApiError("source_not_allowed")


def require_size(source: SourceObject, *, max_bytes: int) -> None:
    """Refuse an object that no worker would read.

    Raises:
        EmptyDocumentError: it has no bytes.
        FileTooLargeError: it has more than the limit.
    """
    if source.size_bytes == 0:
        raise EmptyDocumentError("the object has no bytes")
    if source.size_bytes > max_bytes:
        raise FileTooLargeError(
            f"the object has more than {max_bytes:,} bytes",
            limit=max_bytes,
            actual=source.size_bytes,
        )


def document_of(
    source: SourceObject,
    fields: DocumentFields,
    options: OcrOptions,
    *,
    document_id: UUID,
    tenant: str,
    key_id: str | None,
    page_limits: PageLimits,
    idempotency_key: str | None = None,
) -> Document:
    """Return the row of an object; what its bytes are is not known before they are copied."""
    # As many pages as a PDF of this size has: most archives are PDFs, and no type is told from a
    # name. The split counts.
    pages = guess_pages(MediaType.PDF, source.size_bytes, max_pages=page_limits.max_pages)
    pixels = guess_page_pixels(None, dpi=options.dpi, max_pixels=page_limits.render_max_pixels)
    return Document(
        id=document_id,
        tenant=tenant,
        key_id=key_id,
        page_estimate=pages,
        pixel_estimate=pages * pixels,
        source=source.to_row(),
        filename=_filename(source.address.key),
        media_type=UNREAD_MEDIA_TYPE,
        size_bytes=source.size_bytes,
        sha256="",
        options=options.to_row(),
        options_hash=options.digest(),
        batch_id=fields.batch_id,
        priority=fields.lane,
        idempotency_key=idempotency_key,
        external_id=fields.external_id,
        user_metadata=fields.metadata,
    )


def _filename(key: str) -> str:
    # A key may be longer than a name; its end says more than its beginning.
    return safe_filename(key)[-MAX_LENGTH:].lstrip(" .") or "document"
