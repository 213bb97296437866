"""direct uploads: files that clients put into storage themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "direct_uploads",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("part_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("parts_id", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("checked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("clear_after", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "state IN ('open', 'failed', 'aborted', 'expired')",
            name=op.f("ck_direct_uploads_state_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_direct_uploads")),
        sa.UniqueConstraint(
            "tenant", "idempotency_key", name=op.f("uq_direct_uploads_tenant_idempotency_key")
        ),
    )
    op.create_index(
        "ix_direct_uploads_open",
        "direct_uploads",
        ["tenant"],
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index("ix_direct_uploads_clear_after", "direct_uploads", ["clear_after"])


def downgrade() -> None:
    op.drop_table("direct_uploads")
