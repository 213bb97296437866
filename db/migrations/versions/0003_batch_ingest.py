"""ingest of batches: own ids and metadata of documents, repeatable batches, retries of a batch."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("external_id", sa.Text(), nullable=True))
    op.add_column("documents", sa.Column("metadata", sa.JSON(), nullable=True))
    op.add_column("batches", sa.Column("idempotency_key", sa.Text(), nullable=True))
    op.create_unique_constraint(
        op.f("uq_batches_tenant_idempotency_key"), "batches", ["tenant", "idempotency_key"]
    )
    op.add_column(
        "batches", sa.Column("retry_requested_at", sa.DateTime(timezone=True), nullable=True)
    )
    op.add_column("batches", sa.Column("retry_after", sa.Uuid(), nullable=True))
    op.add_column(
        "batches",
        sa.Column("retry_cancelled_too", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.create_index(
        "ix_batches_retrying",
        "batches",
        ["id"],
        postgresql_where=sa.text("retry_requested_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_batches_retrying", table_name="batches")
    for column in ("retry_cancelled_too", "retry_after", "retry_requested_at"):
        op.drop_column("batches", column)
    op.drop_constraint(op.f("uq_batches_tenant_idempotency_key"), "batches", type_="unique")
    op.drop_column("batches", "idempotency_key")
    op.drop_column("documents", "metadata")
    op.drop_column("documents", "external_id")
