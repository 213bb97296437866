"""The tables. Times are UTC; states are text with a CHECK, so that adding one is a migration.

``dispatch_after`` makes a row its own outbox: it says when somebody should look at the row
again, and is NULL exactly when nobody needs to. ``attempt`` counts claims and is the fencing
token of the work that a claim starts; ``excused`` counts those claims that failed through no
fault of the work, so that an outage of an hour does not use up the attempts of a document.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Computed,
    Date,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    Text,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

from db.scopes import Scope
from db.states import (
    BatchState,
    ChunkState,
    DeliveryState,
    DirectUploadState,
    DocumentState,
    EventType,
    ExportState,
    PageState,
    Priority,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Model(MappedAsDataclass, DeclarativeBase, kw_only=True):
    """Root of the mapped classes."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads this class attribute by name
        str: Text(),
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB(),
    }


class Leased(MappedAsDataclass, kw_only=True):
    """What a row has that workers are told of and claim; the module says what the columns mean."""

    attempt: Mapped[int] = mapped_column(default=0)
    excused: Mapped[int] = mapped_column(default=0)
    deliveries: Mapped[int] = mapped_column(default=0)
    dispatch_after: Mapped[datetime | None] = mapped_column(default=None)
    lease_expires_at: Mapped[datetime | None] = mapped_column(default=None)
    worker: Mapped[str | None] = mapped_column(default=None)


def _one_of(column: str, values: type[StrEnum]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _outbox_index(name: str, *, states: str = "") -> Index:
    """Index only the rows that somebody has to look at: final rows, by far the most, stay out.

    Its order lets the sweep go from lane to lane without reading what waits in them. A lane is
    what shares a tenant's turns fairly: one batch, or all documents that belong to none.
    """
    is_due = "dispatch_after IS NOT NULL"
    return Index(
        name,
        "priority",
        "tenant",
        "lane",
        "dispatch_after",
        postgresql_where=text(f"{is_due} AND state IN ({states})" if states else is_due),
    )


def _tried_index(table: str) -> Index:
    """Index the few rows that may have used up their attempts: a full queue does not hide them."""
    return Index(
        f"ix_{table}_tried",
        "dispatch_after",
        postgresql_where=text("dispatch_after IS NOT NULL AND attempt > excused"),
    )


class Batch(Model):
    """One submission: what a user waits for. Its counts are computed from its documents."""

    __tablename__ = "batches"
    __table_args__ = (
        _one_of("state", BatchState),
        UniqueConstraint("tenant", "idempotency_key"),
        Index("ix_batches_tenant_id", "tenant", "id"),
        Index("ix_batches_retrying", "id", postgresql_where=text("retry_requested_at IS NOT NULL")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    name: Mapped[str]
    options: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    state: Mapped[str] = mapped_column(default=BatchState.OPEN)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    idempotency_key: Mapped[str | None] = mapped_column(default=None)
    # A retry of the batch that is under way: what had ended before is walked in the order of ids.
    retry_requested_at: Mapped[datetime | None] = mapped_column(default=None)
    retry_after: Mapped[UUID | None] = mapped_column(default=None)
    retry_cancelled_too: Mapped[bool] = mapped_column(default=False, server_default=false())


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
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id", ondelete="CASCADE"))
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
        ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True
    )
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    document_id: Mapped[UUID]


class Document(Leased, Model):
    """One file, and where it stands."""

    __tablename__ = "documents"
    __table_args__ = (
        _one_of("state", DocumentState),
        _one_of("priority", Priority),
        UniqueConstraint("tenant", "idempotency_key"),
        Index("ix_documents_tenant_id", "tenant", "id"),
        Index("ix_documents_batch_id_id", "batch_id", "id"),
        # What waits and runs, counted from the index alone.
        Index(
            "ix_documents_open",
            "tenant",
            "key_id",
            postgresql_include=["priority", "page_estimate", "pixel_estimate", "created_at"],
            postgresql_where=text("state IN ('queued', 'splitting', 'recognizing', 'assembling')"),
        ),
        # Apart, so that few assemblies are not looked for among many splits.
        _outbox_index("ix_documents_split_due", states="'queued', 'splitting'"),
        _outbox_index("ix_documents_assembly_due", states="'recognizing', 'assembling'"),
        _tried_index("documents"),
        # Which document can serve another one of its content.
        Index(
            "ix_documents_content_key",
            "tenant",
            "content_key",
            "id",
            postgresql_where=text("content_key IS NOT NULL"),
        ),
        Index(
            "ix_documents_cached",
            "finished_at",
            postgresql_where=text("cached_from IS NOT NULL"),
        ),
        Index(
            "ix_documents_pages_cached",
            "finished_at",
            postgresql_include=["pages_cached"],
            postgresql_where=text("pages_cached > 0 AND cached_from IS NULL"),
        ),
        # How fast pages are done: those of the last minutes, from the index alone.
        Index(
            "ix_documents_finished",
            "finished_at",
            postgresql_include=["page_estimate"],
            postgresql_where=text("finished_at IS NOT NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    source: Mapped[dict[str, Any]]
    filename: Mapped[str]
    media_type: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str]
    options: Mapped[dict[str, Any]]
    options_hash: Mapped[str]
    batch_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), default=None)
    lane: Mapped[str] = mapped_column(
        Computed("coalesce((batch_id)::text, ''::text)", persisted=True), init=False
    )
    priority: Mapped[str] = mapped_column(default="interactive")
    idempotency_key: Mapped[str | None] = mapped_column(default=None)
    # Of the API key that sent it, for quotas; the key's row may be gone.
    key_id: Mapped[str | None] = mapped_column(default=None)
    # The sender's own, returned as given: JSON keeps the order of keys where JSONB does not.
    external_id: Mapped[str | None] = mapped_column(default=None)
    user_metadata: Mapped[dict[str, Any] | None] = mapped_column(
        "metadata", JSON(none_as_null=True), default=None
    )
    # For admission: guessed from type and size when it is accepted, counted by its split.
    page_estimate: Mapped[int] = mapped_column(default=1, server_default=text("1"))
    pixel_estimate: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))

    state: Mapped[str] = mapped_column(default=DocumentState.QUEUED)
    generation: Mapped[int] = mapped_column(default=1)

    # Whether all chunks of this generation were sent as a chord, whose body calls the assembly.
    by_chord: Mapped[bool] = mapped_column(default=False, server_default=false())

    page_count: Mapped[int | None] = mapped_column(default=None)
    pages_ok: Mapped[int] = mapped_column(default=0)
    pages_failed: Mapped[int] = mapped_column(default=0)
    pages_skipped: Mapped[int] = mapped_column(default=0)
    # Of those that are ok: served from pages of earlier documents, each by itself.
    pages_cached: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    truncated: Mapped[bool] = mapped_column(default=False)
    model_version: Mapped[str | None] = mapped_column(default=None)
    result_key: Mapped[str | None] = mapped_column(default=None)
    result_size_bytes: Mapped[int | None] = mapped_column(BigInteger, default=None)
    error_code: Mapped[str | None] = mapped_column(default=None)
    error_detail: Mapped[str | None] = mapped_column(default=None)

    # The bytes without their encryption, where they came with a password.
    unlocked_key: Mapped[str | None] = mapped_column(default=None)
    unlocked_sha256: Mapped[str | None] = mapped_column(default=None)
    # Over bytes, options and models of a reading that can serve others; NULL: it cannot.
    content_key: Mapped[str | None] = mapped_column(default=None)
    # The document whose pages this one was served, which may be gone, and when they were read.
    cached_from: Mapped[UUID | None] = mapped_column(default=None)
    read_at: Mapped[datetime | None] = mapped_column(default=None)

    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    splitting_at: Mapped[datetime | None] = mapped_column(default=None)
    recognizing_at: Mapped[datetime | None] = mapped_column(default=None)
    assembling_at: Mapped[datetime | None] = mapped_column(default=None)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)


class SourcePassword(Model):
    """The password of a file until its document leaves the split; see ``db.document_sources``."""

    __tablename__ = "source_passwords"

    document_id: Mapped[UUID] = mapped_column(
        ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True
    )
    password: Mapped[str] = mapped_column(repr=False)


class Chunk(Leased, Model):
    """Consecutive pages of one document, done by one task call; the page range is half-open."""

    __tablename__ = "chunks"
    __table_args__ = (
        _one_of("state", ChunkState),
        CheckConstraint("page_start >= 0 AND page_stop > page_start", name="page_range"),
        UniqueConstraint("document_id", "generation", "page_start", "page_stop"),
        Index("ix_chunks_running", "document_id", postgresql_where=text("state = 'running'")),
        _outbox_index("ix_chunks_due"),
        _tried_index("chunks"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    document_id: Mapped[UUID] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    generation: Mapped[int]
    # The document's, so that the sweep shares fairly without looking at documents.
    tenant: Mapped[str]
    lane: Mapped[str]
    priority: Mapped[str]
    page_start: Mapped[int]
    page_stop: Mapped[int]
    state: Mapped[str] = mapped_column(default=ChunkState.QUEUED)
    # A single page, tried alone because its chunk could not be finished.
    is_isolated: Mapped[bool] = mapped_column(default=False, server_default=false())
    result_key: Mapped[str | None] = mapped_column(default=None)
    # Of the last attempt that failed; of the chunk, when it has failed.
    error_code: Mapped[str | None] = mapped_column(default=None)


class Page(Model):
    """The ledger of one page; ``result_start`` and ``result_stop`` are bytes of ``result_key``."""

    __tablename__ = "pages"
    __table_args__ = (
        _one_of("state", PageState),
        # Which page can serve another one of its content.
        Index(
            "ix_pages_content_key",
            "content_key",
            "document_id",
            "page_index",
            postgresql_where=text("content_key IS NOT NULL"),
        ),
    )

    document_id: Mapped[UUID] = mapped_column(
        ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True
    )
    page_index: Mapped[int] = mapped_column(primary_key=True)
    generation: Mapped[int]
    state: Mapped[str] = mapped_column(default=PageState.QUEUED)
    attempts: Mapped[int] = mapped_column(default=0)
    route: Mapped[str | None] = mapped_column(default=None)
    result_key: Mapped[str | None] = mapped_column(default=None)
    result_start: Mapped[int | None] = mapped_column(BigInteger, default=None)
    result_stop: Mapped[int | None] = mapped_column(BigInteger, default=None)
    crops_found: Mapped[int | None] = mapped_column(default=None)
    crops_kept: Mapped[int | None] = mapped_column(default=None)
    truncated: Mapped[bool] = mapped_column(default=False)
    line_count: Mapped[int | None] = mapped_column(default=None)
    mean_confidence: Mapped[float | None] = mapped_column(default=None)
    rotation_deg: Mapped[int | None] = mapped_column(default=None)
    durations: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    model_version: Mapped[str | None] = mapped_column(default=None)
    # Over picture, models and tenant of a page that can serve others; NULL: it cannot.
    content_key: Mapped[bytes | None] = mapped_column(default=None)
    error_code: Mapped[str | None] = mapped_column(default=None)
    error_detail: Mapped[str | None] = mapped_column(default=None)


class DocumentEvent(Model):
    """What happened to a document; written by a trigger of ``documents`` and by ``db.events``.

    ``number`` counts the events of one document, under the lock of its row: who reads them in its
    order misses none. Number 1, that it was accepted, is the document's own row.
    """

    __tablename__ = "document_events"
    __table_args__ = (_one_of("type", EventType),)

    document_id: Mapped[UUID] = mapped_column(
        ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    type: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp(), init=False)
    generation: Mapped[int]
    page_count: Mapped[int | None] = mapped_column(default=None)
    pages_ok: Mapped[int] = mapped_column(default=0)
    pages_failed: Mapped[int] = mapped_column(default=0)
    pages_skipped: Mapped[int] = mapped_column(default=0)
    error_code: Mapped[str | None] = mapped_column(default=None)


class WebhookEndpoint(Model):
    """An address of a tenant that is told how documents end.

    Its secrets are kept as they are, since every message is signed with them. ``failures`` counts
    those since the last success, ``rest_until`` keeps it from being tried again at once.
    """

    __tablename__ = "webhook_endpoints"
    __table_args__ = (Index("ix_webhook_endpoints_tenant_id", "tenant", "id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    url: Mapped[str]
    event_types: Mapped[list[str]] = mapped_column(ARRAY(Text()))
    secret: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    previous_secret: Mapped[str | None] = mapped_column(default=None)
    previous_secret_until: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    failures: Mapped[int] = mapped_column(default=0)
    failing_since: Mapped[datetime | None] = mapped_column(default=None)
    rest_until: Mapped[datetime | None] = mapped_column(default=None)
    last_error: Mapped[str | None] = mapped_column(default=None)
    disabled_at: Mapped[datetime | None] = mapped_column(default=None)
    disabled_reason: Mapped[str | None] = mapped_column(default=None)


class WebhookDelivery(Model):
    """One message to one endpoint; written by a trigger of ``documents``.

    ``message_id`` is the event's own, the same for every endpoint and every try. ``dispatch_after``
    is NULL when nobody has to look at it any more, and ``attempt`` the fencing token, as elsewhere.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        _one_of("state", DeliveryState),
        Index("ix_webhook_deliveries_endpoint_id_id", "endpoint_id", "id"),
        Index(
            "ix_webhook_deliveries_due",
            "endpoint_id",
            "dispatch_after",
            postgresql_where=text("dispatch_after IS NOT NULL"),
        ),
        Index(
            "ix_webhook_deliveries_held",
            "endpoint_id",
            postgresql_where=text("lease_expires_at IS NOT NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    endpoint_id: Mapped[UUID] = mapped_column(
        ForeignKey("webhook_endpoints.id", ondelete="CASCADE")
    )
    message_id: Mapped[str]
    type: Mapped[str]
    payload: Mapped[dict[str, Any]]
    event_at: Mapped[datetime]
    retry_until: Mapped[datetime]
    state: Mapped[str] = mapped_column(
        default=DeliveryState.WAITING, server_default=text("'waiting'")
    )
    attempt: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    dispatch_after: Mapped[datetime | None] = mapped_column(default=None)
    lease_expires_at: Mapped[datetime | None] = mapped_column(default=None)
    last_attempt_at: Mapped[datetime | None] = mapped_column(default=None)
    last_status: Mapped[int | None] = mapped_column(default=None)
    last_error: Mapped[str | None] = mapped_column(default=None)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)


class Export(Leased, Model):
    """A form of a document's result that a worker makes once and stores beside it.

    ``generation`` is that of the result; ``pages`` is the choice of pages, empty for all.
    """

    __tablename__ = "exports"
    __table_args__ = (
        _one_of("state", ExportState),
        UniqueConstraint("document_id", "generation", "format", "pages"),
        _outbox_index("ix_exports_due"),
        _tried_index("exports"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    document_id: Mapped[UUID] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    generation: Mapped[int]
    format: Mapped[str]
    pages: Mapped[str]
    # The document's, so that the sweep shares fairly without looking at documents.
    tenant: Mapped[str]
    lane: Mapped[str]
    priority: Mapped[str]
    state: Mapped[str] = mapped_column(default=ExportState.QUEUED)
    result_key: Mapped[str | None] = mapped_column(default=None)
    result_size_bytes: Mapped[int | None] = mapped_column(BigInteger, default=None)
    error_code: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)


class ReadingModel(Model):
    """Models that slots read with, and when the last of them started."""

    __tablename__ = "reading_models"

    model_version: Mapped[str] = mapped_column(primary_key=True)
    started_at: Mapped[datetime]


_SCOPES = f"'{{{','.join(Scope)}}}'::text[]"


class ApiKey(Model):
    """A key ``pf_<id>_<secret>``; only the SHA-256 of the random secret is kept.

    The secret of before is valid until ``previous_secret_until``, and told apart from an unknown
    one after it. A quota of NULL is none: the limits of the whole system hold for every
    key. ``last_used_at`` is minutes behind.
    """

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint(f"cardinality(scopes) > 0 AND scopes <@ {_SCOPES}", name="scopes_known"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    secret_sha256: Mapped[str]
    name: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    expires_at: Mapped[datetime | None] = mapped_column(default=None)
    revoked_at: Mapped[datetime | None] = mapped_column(default=None)
    max_open_pages: Mapped[int | None] = mapped_column(default=None)
    max_pages_per_day: Mapped[int | None] = mapped_column(default=None)
    scopes: Mapped[list[str]] = mapped_column(
        ARRAY(Text()), default_factory=lambda: [*Scope], server_default=text(_SCOPES)
    )
    previous_secret_sha256: Mapped[str | None] = mapped_column(default=None)
    previous_secret_until: Mapped[datetime | None] = mapped_column(default=None)
    last_used_at: Mapped[datetime | None] = mapped_column(default=None)
    max_requests_per_minute: Mapped[int | None] = mapped_column(default=None)


class KeyUsage(Model):
    """Pages that a key has sent on one day (UTC)."""

    __tablename__ = "key_usage"

    key_id: Mapped[str] = mapped_column(
        ForeignKey("api_keys.id", ondelete="CASCADE"), primary_key=True
    )
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    pages: Mapped[int] = mapped_column(BigInteger, default=0)
    documents: Mapped[int] = mapped_column(BigInteger, default=0)


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
        _one_of("state", DirectUploadState),
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
