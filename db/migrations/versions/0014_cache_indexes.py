"""indexes by which documents and pages are found that can serve others."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_INDEXES = (
    # In the orders in which the oldest is looked for.
    ("ix_documents_content_key", "documents", ["tenant", "content_key", "id"]),
    ("ix_pages_content_key", "pages", ["content_key", "document_id", "page_index"]),
    ("ix_documents_cached", "documents", ["finished_at"]),
    ("ix_documents_pages_cached", "documents", ["finished_at"]),
)
_OPTIONS: dict[str, dict[str, Any]] = {
    "ix_documents_content_key": {"postgresql_where": sa.text("content_key IS NOT NULL")},
    "ix_pages_content_key": {"postgresql_where": sa.text("content_key IS NOT NULL")},
    "ix_documents_cached": {"postgresql_where": sa.text("cached_from IS NOT NULL")},
    "ix_documents_pages_cached": {
        "postgresql_where": sa.text("pages_cached > 0 AND cached_from IS NULL"),
        "postgresql_include": ["pages_cached"],
    },
}


def upgrade() -> None:
    # Beside whoever writes: each reads its whole table, which may take an hour. Nothing else is
    # in this revision, so that it can be run again after it broke off; what it left is no index.
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")
        for name, table, columns in _INDEXES:
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
            op.create_index(name, table, columns, postgresql_concurrently=True, **_OPTIONS[name])
        op.execute("RESET lock_timeout")


def downgrade() -> None:
    for name, table, _ in _INDEXES:
        op.drop_index(name, table)
