"""The tables of what is on its way to become documents, and of what has become one already."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    LargeBinary,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.model_base import Model, one_of
from db.models import Batch
from db.states import DirectUploadState


class BatchListing(Model):
    """What a batch is filled from: objects by name, a manifest, or all that lies under a prefix.

    It is gone through page by page. ``cursor`` says how far that has come, and moves in the
    transaction that adds the documents of a page. ``dispatch_after`` is NULL when nobody has to
    look at it any more, and ``attempt`` the fencing token, as elsewhere; ``failures`` counts the
    claims since the last page that came to nothing.
    """

    __tablename__ = "batch_listings"
    __table_args__ = (
        Index("ix_batch_listings_batch_id", "batch_id"),
        Index(
            "ix_batch_listings_due",
            "tenant",
            "dispatch_after",
            postgresql_where=text("dispatch_after IS NOT NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey(Batch.id, ondelete="CASCADE"))
    tenant: Mapped[str]
    # As it was asked for; of objects, only until they are found. JSON keeps metadata of the sender
    # as it was given, JSONB does not.
    source: Mapped[dict[str, Any]] = mapped_column(JSON)
    source_sha256: Mapped[str] = mapped_column(init=False)
    key_id: Mapped[str | None] = mapped_column(default=None)
    # The manifest as it was when it was opened first: later pages are of the same bytes.
    pinned: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), default=None)
    cursor: Mapped[str | None] = mapped_column(default=None)
    is_checked: Mapped[bool] = mapped_column(default=False)
    found: Mapped[int] = mapped_column(BigInteger, default=0)
    duplicates: Mapped[int] = mapped_column(BigInteger, default=0)
    skipped: Mapped[int] = mapped_column(BigInteger, default=0)
    size_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    failures: Mapped[int] = mapped_column(default=0)
    dispatch_after: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    error_code: Mapped[str | None] = mapped_column(default=None)
    error_detail: Mapped[str | None] = mapped_column(default=None)


class ListingTurn(Model):
    """When a listing of a tenant was taken last, so that tenants take turns."""

    __tablename__ = "listing_turns"

    tenant: Mapped[str] = mapped_column(primary_key=True)
    taken_at: Mapped[datetime]


class BatchObject(Model):
    """An object of which a batch has a document, so that it has one only.

    ``fingerprint`` is of two halves, digests of where the object lies and of what was found there:
    a key alone may be longer than an index takes. It stays when the document is deleted.
    """

    __tablename__ = "batch_objects"

    batch_id: Mapped[UUID] = mapped_column(
        ForeignKey(Batch.id, ondelete="CASCADE"), primary_key=True
    )
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    document_id: Mapped[UUID]


class Upload(Model):
    """An object that is made before its document; one that stays longer than it may is nobody's.

    Written before the object, and gone in the transaction that adds the document.
    """

    __tablename__ = "uploads"
    __table_args__ = (Index("ix_uploads_expires_at", "expires_at"),)

    document_id: Mapped[UUID] = mapped_column(primary_key=True)
    expires_at: Mapped[datetime]


class DirectUpload(Model):
    """A file that a client puts into storage itself, and the document that it is to become.

    ``id`` is that document's. ``parts_id`` names its parts in storage, ``checked_until`` says for
    how long whoever checks it holds it, ``clear_after`` when what is left of it is to be removed.
    """

    __tablename__ = "direct_uploads"
    __table_args__ = (
        one_of("state", DirectUploadState),
        UniqueConstraint("tenant", "idempotency_key"),
        Index("ix_direct_uploads_open", "tenant", postgresql_where=text("state = 'open'")),
        Index("ix_direct_uploads_clear_after", "clear_after"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    filename: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    part_bytes: Mapped[int] = mapped_column(BigInteger)
    # As it was announced, in lower-case hex; NULL: nothing was.
    sha256: Mapped[str | None]
    # What goes with the file, as it was sent: JSON keeps the order of keys where JSONB does not.
    fields: Mapped[dict[str, Any]] = mapped_column(JSON())
    idempotency_key: Mapped[str | None] = mapped_column(default=None)
    state: Mapped[str] = mapped_column(default=DirectUploadState.OPEN)
    parts_id: Mapped[str | None] = mapped_column(default=None)
    error_code: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    expires_at: Mapped[datetime] = mapped_column(init=False)
    checked_until: Mapped[datetime | None] = mapped_column(default=None)
    clear_after: Mapped[datetime] = mapped_column(init=False)


class S3Event(Model):
    """An object of a watched place that became a document, so that it does so once.

    It stays when the document is deleted: the object may well be there, and must not come again.
    ``version_id`` is empty where the bucket keeps no versions.
    """

    __tablename__ = "s3_events"

    bucket: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    version_id: Mapped[str] = mapped_column(primary_key=True)
    etag: Mapped[str] = mapped_column(primary_key=True)
    document_id: Mapped[UUID]
    # Of the event that brought it; NULL where the sender has none, and for what was found listed.
    sequencer: Mapped[str | None] = mapped_column(default=None)
    received_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
