"""passwords of files that are not split yet, and copies of files without their encryption."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("unlocked_key", sa.Text(), nullable=True))
    op.add_column("documents", sa.Column("unlocked_sha256", sa.Text(), nullable=True))
    op.create_table(
        "source_passwords",
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("password", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_source_passwords_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_source_passwords")),
    )
    # A document leaves its split in several places: read, failed, given up, cancelled, deleted.
    # Whichever it is, the password goes with the same COMMIT.
    op.execute("""
        CREATE FUNCTION forget_source_password() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          DELETE FROM source_passwords WHERE document_id = NEW.id;
          RETURN NULL;
        END
        $$
    """)
    op.execute("""
        CREATE TRIGGER documents_forget_password AFTER UPDATE OF state ON documents
        FOR EACH ROW WHEN (OLD.state IN ('queued', 'splitting')
          AND NEW.state NOT IN ('queued', 'splitting'))
        EXECUTE FUNCTION forget_source_password()
    """)


def downgrade() -> None:
    op.execute("DROP TRIGGER documents_forget_password ON documents")
    op.execute("DROP FUNCTION forget_source_password()")
    op.drop_table("source_passwords")
    op.drop_column("documents", "unlocked_sha256")
    op.drop_column("documents", "unlocked_key")
