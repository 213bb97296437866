"""batches that are filled from names, a manifest or a prefix, and what each has of it."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_STATES = "'open', 'listing', 'running', 'finished', 'failed', 'cancelled'"
_EARLIER_STATES = "'open', 'running', 'finished', 'cancelled'"


def upgrade() -> None:
    _know_states(_STATES)
    op.create_table(
        "batch_listings",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("source_sha256", sa.Text(), nullable=False),
        sa.Column("pinned", sa.JSON(), nullable=True),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("is_checked", sa.Boolean(), nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=False),
        sa.Column("duplicates", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("dispatch_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["batch_id"],
            ["batches.id"],
            name=op.f("fk_batch_listings_batch_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_listings")),
    )
    op.create_index("ix_batch_listings_batch_id", "batch_listings", ["batch_id"])
    op.create_index(
        "ix_batch_listings_due",
        "batch_listings",
        ["tenant", "dispatch_after"],
        postgresql_where=sa.text("dispatch_after IS NOT NULL"),
    )
    op.create_table(
        "listing_turns",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_listing_turns")),
    )
    op.create_table(
        "batch_objects",
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_id"],
            ["batches.id"],
            name=op.f("fk_batch_objects_batch_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("batch_id", "fingerprint", name=op.f("pk_batch_objects")),
    )


def downgrade() -> None:
    op.drop_table("batch_objects")
    op.drop_table("listing_turns")
    op.drop_table("batch_listings")
    # What an earlier release takes no documents for, either.
    op.execute("UPDATE batches SET state = 'finished' WHERE state = 'failed'")
    _know_states(_EARLIER_STATES)


def _know_states(states: str) -> None:
    op.drop_constraint(op.f("ck_batches_state_known"), "batches", type_="check")
    op.create_check_constraint(op.f("ck_batches_state_known"), "batches", f"state IN ({states})")
