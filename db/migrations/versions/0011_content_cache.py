"""documents that can serve others of their content, and the models that are read with."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("content_key", sa.Text(), nullable=True))
    op.add_column("documents", sa.Column("cached_from", sa.Uuid(), nullable=True))
    op.add_column("documents", sa.Column("read_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "documents",
        sa.Column("pages_cached", sa.Integer(), server_default=sa.text("0"), nullable=False),
    )
    op.create_table(
        "reading_models",
        sa.Column("model_version", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("model_version", name=op.f("pk_reading_models")),
    )


def downgrade() -> None:
    op.drop_table("reading_models")
    op.drop_column("documents", "pages_cached")
    op.drop_column("documents", "read_at")
    op.drop_column("documents", "cached_from")
    op.drop_column("documents", "content_key")
