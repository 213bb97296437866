"""events of documents and deliveries of webhooks, written in the transaction of the move."""

from datetime import datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0005"
down_revision = "0003"
branch_labels = None
depends_on = None

_EVENT_TYPES = (
    "'accepted', 'recognizing', 'progress', 'succeeded', 'partly_succeeded', 'failed',"
    " 'cancelled', 'retried', 'deleted'"
)
_FINAL = "'succeeded', 'partly_succeeded', 'failed', 'cancelled'"


# A UUID of version 7, whose function only newer servers have.
_NEW_ID = """
  encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
    FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
"""


def upgrade() -> None:
    _create_webhooks()
    _create_events()


def downgrade() -> None:
    op.execute("DROP TRIGGER documents_note_arrival ON documents")
    op.execute("DROP TRIGGER documents_note_move ON documents")
    op.execute("DROP FUNCTION note_document_move()")
    op.drop_table("document_events")
    op.drop_table("webhook_deliveries")
    op.drop_table("webhook_endpoints")


def _create_webhooks() -> None:
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("event_types", ARRAY(sa.Text()), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("previous_secret", sa.Text(), nullable=True),
        _time("previous_secret_until", nullable=True),
        _time("created_at", default="now()", nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        _time("failing_since", nullable=True),
        _time("rest_until", nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        _time("disabled_at", nullable=True),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_endpoints")),
    )
    op.create_index("ix_webhook_endpoints_tenant_id", "webhook_endpoints", ["tenant", "id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("payload", JSONB(), nullable=False),
        _time("event_at", nullable=False),
        _time("retry_until", nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        _time("dispatch_after", nullable=True),
        _time("lease_expires_at", nullable=True),
        _time("last_attempt_at", nullable=True),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        _time("finished_at", nullable=True),
        sa.CheckConstraint(
            "state IN ('waiting', 'delivered', 'failed')",
            name=op.f("ck_webhook_deliveries_state_known"),
        ),
        sa.ForeignKeyConstraint(
            ["endpoint_id"],
            ["webhook_endpoints.id"],
            name=op.f("fk_webhook_deliveries_endpoint_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index(
        "ix_webhook_deliveries_endpoint_id_id", "webhook_deliveries", ["endpoint_id", "id"]
    )
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["endpoint_id", "dispatch_after"],
        postgresql_where=sa.text("dispatch_after IS NOT NULL"),
    )
    op.create_index(
        "ix_webhook_deliveries_held",
        "webhook_deliveries",
        ["endpoint_id"],
        postgresql_where=sa.text("lease_expires_at IS NOT NULL"),
    )


def _time(name: str, *, nullable: bool, default: str | None = None) -> sa.Column[datetime]:
    return sa.Column(
        name,
        sa.DateTime(timezone=True),
        server_default=None if default is None else sa.text(default),
        nullable=nullable,
    )


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
          event_number integer;
          told_at timestamptz;
        BEGIN
          event_type := CASE
            WHEN NEW.state IN ({_FINAL}) THEN NEW.state
            WHEN NEW.state = 'deleting' THEN 'deleted'
            WHEN OLD.state IN ({_FINAL}) THEN 'retried'
            WHEN OLD.state <> 'assembling' AND NEW.state = 'recognizing' AND NEW.page_count > 1
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
              FROM document_events WHERE document_id = NEW.id
              RETURNING number, created_at INTO event_number, told_at;
          END IF;
          IF event_type IN ({_FINAL}) THEN
            INSERT INTO webhook_deliveries (id, endpoint_id, message_id, type, payload, event_at,
                retry_until, dispatch_after)
              SELECT {_NEW_ID}, id,
                'msg_' || replace(NEW.id::text, '-', '') || '_' || event_number,
                'document.' || event_type,
                jsonb_build_object(
                  'document_id', NEW.id, 'batch_id', NEW.batch_id, 'state', NEW.state,
                  'generation', NEW.generation, 'error_code', NEW.error_code,
                  'pages', NEW.page_count, 'pages_ok', NEW.pages_ok,
                  'pages_failed', NEW.pages_failed, 'pages_skipped', NEW.pages_skipped
                ),
                told_at, now() + interval '24 hours', now()
              FROM webhook_endpoints
              WHERE tenant = NEW.tenant AND disabled_at IS NULL
                AND 'document.' || event_type = ANY(event_types);
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
