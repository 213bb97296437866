"""Make a document of a file that the client has put into storage, once its bytes are checked.

They are read again as they lie there, block by block: that gives the hash and the type of every
store, whatever checksums it knows of. Nobody can change them any more, since the object is only
put together here, and the addresses are of its parts.
"""

from collections.abc import Mapping
from functools import partial
from uuid import UUID

import anyio
import structlog
from anyio.to_thread import run_sync

from api.accept_document import (
    DIRECTLY_UPLOADED,
    Acceptance,
    Submission,
    add_row,
    document_of_upload,
    options_of,
    page_limits_of,
)
from api.background import StillRunningError
from api.direct_upload_ledger import CHECK_LEASE_S, DirectUploadLedger
from api.errors import ApiError
from api.ledger import DocumentEntry, TenantLedger
from api.services import Services
from api.source_upload import StoredSource
from api.upload_admission import require_admission, require_room
from api.upload_form import DocumentFields
from api.uploaded_object import ObjectReading, UploadMismatchError, put_together
from db import direct_uploads
from db.errors import DatabaseError, RowNotFoundError
from db.intake_models import DirectUpload
from db.states import DirectUploadState
from storage import keys
from workers.ocr.errors import DocumentError

_RENEWAL_S = CHECK_LEASE_S / 6
# Of the time in which a request is to be answered.
_SHARE_OF_WAITING = 0.75

log = structlog.get_logger(__name__)


async def complete_direct_upload(
    upload_id: UUID,
    etags: Mapping[int, str],
    *,
    ledger: TenantLedger,
    uploads: DirectUploadLedger,
    services: Services,
    password: str | None = None,
) -> Acceptance:
    """Check an upload and make its document, or return the document that it is already.

    What takes longer than a request may goes on behind its answer. Dying at any point leaves the
    upload as it was, to be completed again.

    Args:
        upload_id: of the tenant's.
        etags: of parts by number, without quotes; those in storage must have them.
        ledger: of the tenant.
        uploads: of the tenant.
        services: of the process.
        password: of an encrypted file; it is not kept with the upload.

    Raises:
        ApiError: the bytes are not all there or not those announced, they are being read, or the
            document is refused as one that comes with its request would be.
        DocumentError: the file is at fault.
        RowNotFoundError: there is no such upload.
        StorageError: storage does not do its part.
        DatabaseError: the document cannot be added.
    """
    found = await run_sync(find_upload, upload_id, ledger, uploads)
    if isinstance(found, DocumentEntry):
        return Acceptance(found, is_replayed=True)
    if found.state == DirectUploadState.FAILED:
        raise ApiError(found.error_code or "internal")
    check = partial(
        _check,
        found,
        etags,
        ledger=ledger,
        uploads=uploads,
        services=services,
        password=password,
    )
    try:
        return await services.background.outcome(
            check, within_s=_SHARE_OF_WAITING * services.settings.api_answer_timeout_s
        )
    except StillRunningError as error:
        raise ApiError("upload_checking") from error


def find_upload(
    upload_id: UUID, ledger: TenantLedger, uploads: DirectUploadLedger
) -> DirectUpload | DocumentEntry:
    """Return an upload, or the document that it has become.

    Raises:
        RowNotFoundError: there is none, or it has ended without a document.
        DatabaseError: the database cannot be asked.
    """
    try:
        return uploads.get(upload_id)
    except RowNotFoundError:
        entry = ledger.document(upload_id)
        if entry.document.source["kind"] != DIRECTLY_UPLOADED:
            raise
        return entry


async def _check(
    upload: DirectUpload,
    etags: Mapping[int, str],
    *,
    ledger: TenantLedger,
    uploads: DirectUploadLedger,
    services: Services,
    password: str | None,
) -> Acceptance:
    fields = DocumentFields.model_validate(upload.fields)
    await run_sync(require_admission, upload.idempotency_key, ledger, services.admission)
    await run_sync(require_room, fields.lane, upload.idempotency_key, ledger, services.admission)
    # It reads as much as an upload brings, and so takes the place of one.
    with services.upload_slot(ledger.tenant):
        if not await run_sync(uploads.begin_check, upload.id):
            raise ApiError("upload_checking")
        try:
            await services.in_storage_thread(put_together, upload, etags, services.store)
            source = await _read(upload, uploads, services)
            submission = Submission(
                upload.id,
                upload.filename,
                fields,
                upload.idempotency_key,
                password=password,
            )
            acceptance = await services.in_accepting_thread(
                _accept, submission, source, ledger=ledger, services=services
            )
        except UploadMismatchError as error:
            await run_sync(partial(uploads.fail, upload.id, code="upload_mismatch"))
            raise ApiError("upload_mismatch") from error
        except DocumentError as error:
            await run_sync(partial(uploads.fail, upload.id, code=error.code))
            raise
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _let_go(upload, uploads)
            raise
    return acceptance


async def _read(
    upload: DirectUpload, uploads: DirectUploadLedger, services: Services
) -> StoredSource:
    """Read an upload once, and say what it is.

    Raises:
        UploadMismatchError: it is not what was announced.
        UnsupportedMediaTypeError: the content is none of the formats that are read.
        ApiError: it took so long that somebody else may have the upload.
        StorageError: it cannot be read.
    """
    reading = ObjectReading(services.store.stream(keys.source_key(upload.id)))
    renewal_at = anyio.current_time() + _RENEWAL_S
    try:
        while await services.in_storage_thread(reading.read_part):
            if anyio.current_time() >= renewal_at:
                if not await run_sync(uploads.renew_check, upload.id):
                    raise ApiError("upload_checking")
                renewal_at = anyio.current_time() + _RENEWAL_S
        return reading.describe(upload)
    finally:
        with anyio.CancelScope(shield=True):
            await services.in_storage_thread(reading.close)


def _accept(
    submission: Submission,
    source: StoredSource,
    *,
    ledger: TenantLedger,
    services: Services,
) -> Acceptance:
    settings = services.settings
    document = document_of_upload(
        submission,
        source,
        options_of(submission.fields, ledger),
        ledger=ledger,
        page_limits=page_limits_of(settings),
        kind=DIRECTLY_UPLOADED,
    )
    return add_row(
        document,
        ledger=ledger,
        messages=services.messages,
        admission=services.admission,
        dispatch_after_s=settings.dispatch_grace_s,
        # Refused now, it may be taken when it is completed again; the sweep removes what expires.
        discard=lambda: None,
        end_upload=direct_uploads.end,
        password=submission.password,
    )


async def _let_go(upload: DirectUpload, uploads: DirectUploadLedger) -> None:
    try:
        await run_sync(uploads.end_check, upload.id)
    except DatabaseError:
        log.warning("upload stays held until its lease ends", upload_id=str(upload.id))
