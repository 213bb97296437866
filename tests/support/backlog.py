"""Batches of many due documents, made faster than one by one."""

from uuid import UUID

from sqlalchemy import text

from db import batches
from db.engine import Session
from db.ids import new_id
from db.models import Batch
from tests.support.rows import add_document


def add_batch(session: Session, *, tenant: str) -> UUID:
    batch = Batch(id=new_id(), tenant=tenant, name="boxes")
    batches.insert(session, batch)
    return batch.id


def add_bulk(session: Session, *, tenant: str, count: int, age_s: int = 60) -> str:
    """Add a batch of due documents; return its lane."""
    batch_id = add_batch(session, tenant=tenant)
    first = add_document(
        session, tenant=tenant, batch_id=batch_id, priority="bulk", dispatch_after_s=-age_s
    )
    # 10,000 rows one by one would take longer than all else.
    session.execute(
        text("""
            INSERT INTO documents (
              id, tenant, source, filename, media_type, size_bytes, sha256, options, options_hash,
              batch_id, priority, state, generation, attempt, excused, deliveries, dispatch_after,
              pages_ok, pages_failed, pages_skipped, truncated)
            SELECT gen_random_uuid(), tenant, source, filename, media_type, size_bytes, sha256,
              options, options_hash, batch_id, priority, state, generation, attempt, excused,
              deliveries, dispatch_after + number * interval '1 us', pages_ok, pages_failed,
              pages_skipped, truncated
            FROM documents, generate_series(1, :more) AS number WHERE documents.id = :id
        """),
        {"id": first, "more": count - 1},
    )
    return str(batch_id)
