"""pages that can serve others of their content."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The indexes are of no row yet, so that making them reads the tables once and writes nothing.
    op.add_column(
        "documents",
        sa.Column("pages_cached", sa.Integer(), server_default=sa.text("0"), nullable=False),
    )
    op.create_index(
        "ix_documents_pages_cached",
        "documents",
        ["finished_at"],
        postgresql_include=["pages_cached"],
        postgresql_where=sa.text("pages_cached > 0 AND cached_from IS NULL"),
    )
    op.add_column("pages", sa.Column("content_key", sa.LargeBinary(), nullable=True))
    op.create_index(
        "ix_pages_content_key",
        "pages",
        ["content_key"],
        postgresql_where=sa.text("content_key IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_pages_content_key", "pages")
    op.drop_column("pages", "content_key")
    op.drop_index("ix_documents_pages_cached", "documents")
    op.drop_column("documents", "pages_cached")
