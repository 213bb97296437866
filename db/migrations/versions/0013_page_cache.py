"""pages that can serve others of their content."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("pages", sa.Column("content_key", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("pages", "content_key")
