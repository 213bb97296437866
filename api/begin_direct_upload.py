"""Announce a file that the client puts into storage itself, and give it addresses for the parts."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from anyio.to_thread import run_sync

from api.accept_document import DIRECTLY_UPLOADED, options_of
from api.direct_upload_ledger import DirectUploadLedger
from api.direct_upload_views import NewUpload, PartPage, PartView, plan_of
from api.errors import ApiError
from api.filenames import safe_filename
from api.ledger import DocumentEntry, TenantLedger
from api.part_plan import plan_parts
from api.services import Services
from api.upload_admission import require_admission, require_room
from api.upload_form import DocumentFields
from db.direct_uploads import TooManyUploadsError
from db.errors import DuplicateRowError
from db.ids import new_id
from db.intake_models import DirectUpload
from db.models import Document
from storage import keys
from storage.errors import ObjectNotFoundError
from storage.object_store import ObjectStore
from workers.ocr.errors import FileTooLargeError

log = structlog.get_logger(__name__)

_FIELDS = frozenset(DocumentFields.model_fields)


@dataclass(frozen=True, slots=True)
class Announced:
    """What stands for an announcement: an upload, or the document that it is by now."""

    found: DirectUpload | DocumentEntry
    is_replayed: bool


async def begin_direct_upload(
    new: NewUpload,
    idempotency_key: str | None,
    *,
    ledger: TenantLedger,
    uploads: DirectUploadLedger,
    services: Services,
) -> Announced:
    """Note an upload, and let storage take its parts.

    The row comes first: of what storage has for a client that nobody hears of again, it is what the
    sweep finds it by.

    Raises:
        ApiError: the batch is unknown or closed, the Idempotency-Key was used for another request,
            the system is full, a quota used up, or too many uploads of the tenant are open.
        FileTooLargeError: the file has more bytes than the limit.
        StorageError: storage takes no parts; announced again under its key, it is tried again.
        DatabaseError: the row cannot be written.
    """
    announced = await run_sync(_note, new, idempotency_key, ledger, uploads, services)
    upload = announced.found
    if isinstance(upload, DocumentEntry) or upload.parts_id is not None:
        return announced
    key = keys.source_key(upload.id)
    parts = services.store.part_uploads
    parts_id = await services.in_storage_thread(parts.begin, key)
    if not await run_sync(uploads.note_parts, upload.id, parts_id):
        # The same request, sent twice at once, was faster; or it was aborted meanwhile.
        await services.in_storage_thread(parts.abort, key, parts_id)
    return Announced(await run_sync(uploads.get, upload.id), announced.is_replayed)


def parts_to_send(
    upload: DirectUpload,
    store: ObjectStore,
    *,
    first: int,
    limit: int,
    address_s: int,
    is_new: bool = False,
) -> PartPage:
    """Return parts from number ``first`` on, each with an address that is made for this answer.

    Storage is asked which of them it has, unless the upload is new.

    Raises:
        StorageError: it cannot be asked.
    """
    plan = plan_of(upload)
    numbers = range(first, min(first + limit, plan.count + 1))
    stored: Collection[int] = ()
    if numbers and not is_new:
        stored = _stored_parts(upload, store, numbers)
    now = datetime.now(UTC)
    # No longer than the upload: what arrives later would be found by nobody.
    left_s = int((upload.expires_at - now).total_seconds())
    expires_s = max(min(address_s, left_s), 1)
    key = keys.source_key(upload.id)
    return PartPage(
        parts=[
            PartView(
                part_number=number,
                size_bytes=plan.size_of(number),
                is_stored=number in stored,
                url=store.part_uploads.presign(
                    key,
                    upload.parts_id or "",
                    number=number,
                    size_bytes=plan.size_of(number),
                    expires_s=expires_s,
                ),
                url_expires_at=now + timedelta(seconds=expires_s),
            )
            for number in numbers
        ],
        next_part=numbers.stop if numbers and numbers.stop <= plan.count else None,
    )


def _stored_parts(upload: DirectUpload, store: ObjectStore, numbers: range) -> set[int]:
    plan = plan_of(upload)
    stored = set()
    try:
        for part in store.part_uploads.list(
            keys.source_key(upload.id), upload.parts_id or "", after=numbers.start - 1
        ):
            if part.number >= numbers.stop:
                break
            if part.size_bytes == plan.size_of(part.number):
                stored.add(part.number)
    except ObjectNotFoundError:
        # They were put together, and the document could not be accepted: to complete it again is
        # all that is left to do.
        return set(numbers)
    return stored


def _note(
    new: NewUpload,
    idempotency_key: str | None,
    ledger: TenantLedger,
    uploads: DirectUploadLedger,
    services: Services,
) -> Announced:
    settings = services.settings
    if (earlier := _earlier(new, idempotency_key, ledger, uploads)) is not None:
        return earlier
    if new.size_bytes > settings.api_max_upload_bytes:
        raise FileTooLargeError(
            f"the file has more than {settings.api_max_upload_bytes:,} bytes",
            limit=settings.api_max_upload_bytes,
            actual=new.size_bytes,
        )
    options_of(new, ledger)  # refused now, and not when gigabytes have been sent
    require_admission(idempotency_key, ledger, services.admission)
    require_room(new.lane, idempotency_key, ledger, services.admission)
    plan = plan_parts(new.size_bytes, part_bytes=settings.api_direct_upload_part_bytes)
    upload = DirectUpload(
        id=new_id(),
        tenant=ledger.tenant,
        filename=safe_filename(new.filename),
        size_bytes=new.size_bytes,
        part_bytes=plan.part_bytes,
        sha256=new.sha256,
        fields=_fields_of(new),
        idempotency_key=idempotency_key,
    )
    upload_id = upload.id
    try:
        uploads.add(
            upload,
            expires_s=settings.api_direct_upload_expires_s,
            most_open=settings.api_max_direct_uploads,
        )
    except TooManyUploadsError as error:
        raise ApiError("too_many_uploads") from error
    except DuplicateRowError:
        earlier = _earlier(new, idempotency_key, ledger, uploads)
        if earlier is None:
            raise
        return earlier
    log.info("upload announced", upload_id=str(upload_id), size_bytes=new.size_bytes)
    return Announced(uploads.get(upload_id), is_replayed=False)


def _earlier(
    new: NewUpload,
    idempotency_key: str | None,
    ledger: TenantLedger,
    uploads: DirectUploadLedger,
) -> Announced | None:
    """Return what the same request made before, if it was sent before.

    Raises:
        ApiError: another request came with the key.
    """
    if idempotency_key is None:
        return None
    found: DirectUpload | DocumentEntry | None = uploads.of_key(idempotency_key)
    if found is None:
        found = ledger.document_of_key(idempotency_key)
    if found is None:
        return None
    is_same = (
        _announces(new, found)
        if isinstance(found, DirectUpload)
        else _describes(new, found.document, ledger)
    )
    if not is_same:
        raise ApiError("idempotency_mismatch")
    return Announced(found, is_replayed=True)


def _announces(new: NewUpload, upload: DirectUpload) -> bool:
    return (upload.filename, upload.size_bytes, upload.sha256, upload.fields) == (
        safe_filename(new.filename),
        new.size_bytes,
        new.sha256,
        _fields_of(new),
    )


def _describes(new: NewUpload, document: Document, ledger: TenantLedger) -> bool:
    return document.source["kind"] == DIRECTLY_UPLOADED and (
        document.filename,
        document.size_bytes,
        document.sha256,
        document.options_hash,
        document.batch_id,
        document.priority,
        document.external_id,
        document.user_metadata,
    ) == (
        safe_filename(new.filename),
        new.size_bytes,
        new.sha256 or document.sha256,
        options_of(new, ledger).digest(),
        new.batch_id,
        new.lane,
        new.external_id,
        new.metadata,
    )


def _fields_of(new: NewUpload) -> dict[str, object]:
    return new.model_dump(mode="json", include=set(_FIELDS))
