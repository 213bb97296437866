"""The tables of documents and their work; see ``db.model_base`` for columns that several have."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Computed,
    ForeignKey,
    Index,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.model_base import Leased, Model, one_of, outbox_index, tried_index
from db.states import (
    BatchState,
    ChunkState,
    DocumentState,
    EventType,
    ExportState,
    PageState,
    Priority,
)


class Batch(Model):
    """One submission: what a user waits for. Its counts are computed from its documents."""

    __tablename__ = "batches"
    __table_args__ = (
        one_of("state", BatchState),
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


class Document(Leased, Model):
    """One file, and where it stands."""

    __tablename__ = "documents"
    __table_args__ = (
        one_of("state", DocumentState),
        one_of("priority", Priority),
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
        outbox_index("ix_documents_split_due", states="'queued', 'splitting'"),
        outbox_index("ix_documents_assembly_due", states="'recognizing', 'assembling'"),
        tried_index("documents"),
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
        one_of("state", ChunkState),
        CheckConstraint("page_start >= 0 AND page_stop > page_start", name="page_range"),
        UniqueConstraint("document_id", "generation", "page_start", "page_stop"),
        Index("ix_chunks_running", "document_id", postgresql_where=text("state = 'running'")),
        outbox_index("ix_chunks_due"),
        tried_index("chunks"),
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
        one_of("state", PageState),
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
    __table_args__ = (one_of("type", EventType),)

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


class Export(Leased, Model):
    """A form of a document's result that a worker makes once and stores beside it.

    ``generation`` is that of the result; ``pages`` is the choice of pages, empty for all.
    """

    __tablename__ = "exports"
    __table_args__ = (
        one_of("state", ExportState),
        UniqueConstraint("document_id", "generation", "format", "pages"),
        outbox_index("ix_exports_due"),
        tried_index("exports"),
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
