"""The direct uploads that one tenant can see and change: filtered by tenant, as documents are."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from api.auth import Tenant
from api.ledger import services_of
from db import direct_uploads
from db.engine import Transaction
from db.intake_models import DirectUpload

CHECK_LEASE_S = 180.0
"""Far more than storage takes for one part; a process that died holds an upload for as long."""


class DirectUploadLedger:
    """Reads and writes of one tenant; every method is one transaction.

    A method that reads by id raises ``RowNotFoundError`` when the tenant has no such upload,
    and all raise ``DatabaseError`` and its subclasses.
    """

    def __init__(self, transaction: Transaction, tenant: str) -> None:
        self._transaction = transaction
        self.tenant = tenant

    def add(self, upload: DirectUpload, *, expires_s: float, most_open: int) -> None:
        """Insert an upload.

        Raises:
            ValueError: it is another tenant's.
            TooManyUploadsError: the tenant has ``most_open`` already.
            DuplicateRowError: its Idempotency-Key was used before.
        """
        if upload.tenant != self.tenant:
            raise ValueError("a ledger adds uploads of its own tenant only")
        with self._transaction() as session:
            direct_uploads.insert(session, upload, expires_s=expires_s, most_open=most_open)

    def get(self, upload_id: UUID) -> DirectUpload:
        with self._transaction() as session:
            return direct_uploads.get(session, upload_id, tenant=self.tenant)

    def of_key(self, idempotency_key: str) -> DirectUpload | None:
        """Return the open upload that was announced under this Idempotency-Key, if any."""
        with self._transaction() as session:
            return direct_uploads.find_by_idempotency_key(
                session, tenant=self.tenant, key=idempotency_key
            )

    def note_parts(self, upload_id: UUID, parts_id: str) -> bool:
        """Write down what its parts are called in storage; False: that is known, or it ended."""
        with self._transaction() as session:
            return direct_uploads.note_parts(session, upload_id, parts_id)

    def begin_check(self, upload_id: UUID) -> bool:
        """Take an upload, to check it; False: somebody else does, or it has ended."""
        with self._transaction() as session:
            return direct_uploads.begin_check(session, upload_id, lease_s=CHECK_LEASE_S)

    def renew_check(self, upload_id: UUID) -> bool:
        """Hold an upload for longer; False: it is not held any more."""
        with self._transaction() as session:
            return direct_uploads.renew_check(session, upload_id, lease_s=CHECK_LEASE_S)

    def end_check(self, upload_id: UUID) -> None:
        """Let an upload go that could not be checked now."""
        with self._transaction() as session:
            direct_uploads.end_check(session, upload_id)

    def fail(self, upload_id: UUID, *, code: str) -> None:
        """End an upload whose bytes can become no document."""
        with self._transaction() as session:
            direct_uploads.fail(session, upload_id, code=code)

    def abort(self, upload_id: UUID) -> None:
        """End an upload that is not to become a document; its bytes are removed by the sweep.

        Raises:
            UploadIsCheckedError: it may be one in a moment.
        """
        with self._transaction() as session:
            direct_uploads.abort(session, upload_id, tenant=self.tenant)


def upload_ledger_of_request(request: Request, tenant: Tenant) -> DirectUploadLedger:
    """Return the direct uploads of whoever asks."""
    return DirectUploadLedger(services_of(request).transaction, tenant)


DirectUploads = Annotated[DirectUploadLedger, Depends(upload_ledger_of_request)]
