"""events of documents, written by the database itself in the transaction of the move."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0002"
branch_labels = None
depends_on = None

_EVENT_TYPES = (
    "'accepted', 'recognizing', 'progress', 'succeeded', 'partly_succeeded', 'failed',"
    " 'cancelled', 'retried', 'deleted'"
)
_FINAL = "'succeeded', 'partly_succeeded', 'failed', 'cancelled'"


def upgrade() -> None:
    _create_events()


def downgrade() -> None:
    op.execute("DROP TRIGGER documents_note_arrival ON documents")
    op.execute("DROP TRIGGER documents_note_move ON documents")
    op.execute("DROP FUNCTION note_document_move()")
    op.drop_table("document_events")


def _create_events() -> None:
    op.create_table(
        "document_events",
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("pages_ok", sa.Integer(), nullable=False),
        sa.Column("pages_failed", sa.Integer(), nullable=False),
        sa.Column("pages_skipped", sa.Integer(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.CheckConstraint(f"type IN ({_EVENT_TYPES})", name=op.f("ck_document_events_type_known")),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_document_events_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("document_id", "number", name=op.f("pk_document_events")),
    )
    # Documents move in many places, and in one statement for hundreds; this one none can pass by.
    # Who updates a document has its row, so the highest number cannot grow meanwhile. Number 1 is
    # that the document was accepted, which its own row says.
    op.execute(f"""
        CREATE FUNCTION note_document_move() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          event_type text;
        BEGIN
          event_type := CASE
            WHEN NEW.state IN ({_FINAL}) THEN NEW.state
            WHEN NEW.state = 'deleting' THEN 'deleted'
            WHEN OLD.state IN ({_FINAL}) THEN 'retried'
            WHEN OLD.state = 'splitting' AND NEW.state = 'recognizing' AND NEW.page_count > 1
              THEN 'recognizing'
          END;
          IF event_type IS NOT NULL THEN
            INSERT INTO document_events (document_id, number, type, generation, page_count,
                pages_ok, pages_failed, pages_skipped, error_code)
              SELECT NEW.id, coalesce(max(number), 1) + 1, event_type, NEW.generation,
                NEW.page_count,
                -- A retry counts anew, and keeps what was read.
                CASE event_type WHEN 'retried' THEN (
                  SELECT count(*) FROM pages WHERE document_id = NEW.id AND state = 'ok'
                ) ELSE NEW.pages_ok END,
                CASE event_type WHEN 'retried' THEN 0 ELSE NEW.pages_failed END,
                CASE event_type WHEN 'retried' THEN (
                  SELECT count(*) FROM pages WHERE document_id = NEW.id AND state = 'skipped'
                ) ELSE NEW.pages_skipped END,
                NEW.error_code
              FROM document_events WHERE document_id = NEW.id;
          END IF;
          RETURN NULL;
        END
        $$
    """)  # noqa: S608 - states, written above
    op.execute("""
        CREATE TRIGGER documents_note_move AFTER UPDATE OF state ON documents
        FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
        EXECUTE FUNCTION note_document_move()
    """)
    op.execute("""
        CREATE TRIGGER documents_note_arrival AFTER INSERT ON documents
        FOR EACH ROW WHEN (NEW.state <> 'queued')
        EXECUTE FUNCTION note_document_move()
    """)
