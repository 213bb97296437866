"""whoever ends a document waits for nobody who removes a webhook."""

from alembic import op

revision = "0011"
down_revision = "0006"
branch_labels = None
depends_on = None

_FINAL = "'succeeded', 'partly_succeeded', 'failed', 'cancelled'"

# What the foreign key of a delivery asks for anyway. An endpoint that is being removed is passed
# over: asked by the key alone, it is waited for, and then takes the end of the document with it.
_LOCK = "FOR KEY SHARE SKIP LOCKED"

# A UUID of version 7, whose function only newer servers have.
_NEW_ID = """
  encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
    FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
"""


def upgrade() -> None:
    _write_function(lock=_LOCK)


def downgrade() -> None:
    _write_function(lock="")


def _write_function(*, lock: str) -> None:
    """Write the function of 0004 anew; the triggers call it by its name."""
    op.execute(f"""
        CREATE OR REPLACE FUNCTION note_document_move() RETURNS trigger LANGUAGE plpgsql AS $$
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
                AND 'document.' || event_type = ANY(event_types)
              {lock};
          END IF;
          RETURN NULL;
        END
        $$
    """)  # noqa: S608 - written above
