"""first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
    )
    op.create_table(
        "batches",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("options", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('open', 'running', 'finished', 'cancelled')",
            name=op.f("ck_batches_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
    )
    op.create_index("ix_batches_tenant_id", "batches", ["tenant", "id"], unique=False)
    op.create_table(
        "documents",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("options", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("options_hash", sa.Text(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=True),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("excused", sa.Integer(), nullable=False),
        sa.Column("deliveries", sa.Integer(), nullable=False),
        sa.Column("dispatch_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("pages_ok", sa.Integer(), nullable=False),
        sa.Column("pages_failed", sa.Integer(), nullable=False),
        sa.Column("pages_skipped", sa.Integer(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("model_version", sa.Text(), nullable=True),
        sa.Column("result_key", sa.Text(), nullable=True),
        sa.Column("result_size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("splitting_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("recognizing_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("assembling_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "priority IN ('interactive', 'bulk')", name=op.f("ck_documents_priority_known")
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'splitting', 'recognizing', 'assembling', 'succeeded',"
            " 'partly_succeeded', 'failed', 'cancelled')",
            name=op.f("ck_documents_state_known"),
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_documents_batch_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sa.UniqueConstraint(
            "tenant", "idempotency_key", name=op.f("uq_documents_tenant_idempotency_key")
        ),
    )
    op.create_index("ix_documents_batch_id_id", "documents", ["batch_id", "id"], unique=False)
    op.create_index(
        "ix_documents_dispatch_after",
        "documents",
        ["dispatch_after"],
        unique=False,
        postgresql_where=sa.text("dispatch_after IS NOT NULL"),
    )
    op.create_index("ix_documents_tenant_id", "documents", ["tenant", "id"], unique=False)
    op.create_table(
        "chunks",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("page_start", sa.Integer(), nullable=False),
        sa.Column("page_stop", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("excused", sa.Integer(), nullable=False),
        sa.Column("deliveries", sa.Integer(), nullable=False),
        sa.Column("dispatch_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("result_key", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed')",
            name=op.f("ck_chunks_state_known"),
        ),
        sa.CheckConstraint(
            "page_start >= 0 AND page_stop > page_start", name=op.f("ck_chunks_page_range")
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_chunks_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
        sa.UniqueConstraint(
            "document_id",
            "generation",
            "page_start",
            name=op.f("uq_chunks_document_id_generation_page_start"),
        ),
    )
    op.create_index(
        "ix_chunks_dispatch_after",
        "chunks",
        ["dispatch_after"],
        unique=False,
        postgresql_where=sa.text("dispatch_after IS NOT NULL"),
    )
    op.create_table(
        "pages",
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("page_index", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("route", sa.Text(), nullable=True),
        sa.Column("result_key", sa.Text(), nullable=True),
        sa.Column("result_start", sa.BigInteger(), nullable=True),
        sa.Column("result_stop", sa.BigInteger(), nullable=True),
        sa.Column("crops_found", sa.Integer(), nullable=True),
        sa.Column("crops_kept", sa.Integer(), nullable=True),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("line_count", sa.Integer(), nullable=True),
        sa.Column("mean_confidence", sa.Double(), nullable=True),
        sa.Column("rotation_deg", sa.Integer(), nullable=True),
        sa.Column("durations", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("model_version", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'ok', 'failed', 'skipped')", name=op.f("ck_pages_state_known")
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_pages_document_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("document_id", "page_index", name=op.f("pk_pages")),
    )


def downgrade() -> None:
    op.drop_table("pages")
    op.drop_index(
        "ix_chunks_dispatch_after",
        table_name="chunks",
        postgresql_where=sa.text("dispatch_after IS NOT NULL"),
    )
    op.drop_table("chunks")
    op.drop_index("ix_documents_tenant_id", table_name="documents")
    op.drop_index(
        "ix_documents_dispatch_after",
        table_name="documents",
        postgresql_where=sa.text("dispatch_after IS NOT NULL"),
    )
    op.drop_index("ix_documents_batch_id_id", table_name="documents")
    op.drop_table("documents")
    op.drop_index("ix_batches_tenant_id", table_name="batches")
    op.drop_table("batches")
    op.drop_table("api_keys")
