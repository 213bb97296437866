"""What happened to a document, in order; most of it is written by a trigger of ``documents``.

The trigger (see the migration that makes it) runs in the transaction of the move itself, whichever
statement that is, so no event is lost and none is told that did not happen. The row of a document
is locked by whoever adds an event of it, so its numbers appear in their order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from db.models import Document, DocumentEvent
from db.states import FINAL_DOCUMENT_STATES, EventType

# For a person who looks on; a document of ten thousand pages has some thousand chunks.
PROGRESS_INTERVAL_S = 2.0
ACCEPTED_NUMBER = 1

ENDING = frozenset({*(EventType(state) for state in FINAL_DOCUMENT_STATES), EventType.DELETED})
"""After one of these nothing happens until somebody asks for a retry."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; ``page_count``: None until the document is split."""

    number: int
    type: EventType
    at: datetime
    generation: int = 1
    page_count: int | None = None
    pages_ok: int = 0
    pages_failed: int = 0
    pages_skipped: int = 0
    error_code: str | None = None


def list_after(session: Session, document: Document, number: int, *, limit: int) -> Sequence[Event]:
    """Return the events of a document that follow a number, in order."""
    rows = session.scalars(
        select(DocumentEvent)
        .where(DocumentEvent.document_id == document.id, DocumentEvent.number > number)
        .order_by(DocumentEvent.number)
        .limit(limit)
    )
    found = [_event(row) for row in rows]
    if number < ACCEPTED_NUMBER:
        found.insert(0, Event(ACCEPTED_NUMBER, EventType.ACCEPTED, document.created_at))
    return found[:limit]


def list_of_many(
    session: Session, after: Mapping[UUID, int], *, limit: int
) -> Mapping[UUID, Sequence[Event]]:
    """Return what followed a number of each document, up to ``limit`` each; nothing is left out.

    A document that is gone, with its events, is told as deleted.
    """
    rows = session.execute(
        text("""
            SELECT wanted.id AS document_id, wanted.number AS after, found.*
            FROM unnest(CAST(:ids AS uuid[]), CAST(:numbers AS integer[])) AS wanted(id, number)
            LEFT JOIN documents ON documents.id = wanted.id
            LEFT JOIN LATERAL (
              SELECT number, type, created_at, generation, page_count, pages_ok, pages_failed,
                pages_skipped, error_code
              FROM document_events
              WHERE document_id = wanted.id AND document_events.number > wanted.number
              ORDER BY number LIMIT :limit
            ) AS found ON true
            WHERE found.number IS NOT NULL OR documents.id IS NULL
            ORDER BY found.number
        """),
        {"ids": list(after), "numbers": list(after.values()), "limit": limit},
    )
    events: dict[UUID, list[Event]] = {}
    for row in rows:
        events.setdefault(row.document_id, []).append(_told(session, row))
    return events


def note_progress(
    session: Session, document_id: UUID, *, every_s: float = PROGRESS_INTERVAL_S
) -> None:
    """Add how many pages are done, unless something was told in the last ``every_s`` seconds.

    The document's row has to be locked by the transaction.
    """
    session.execute(
        text("""
            INSERT INTO document_events (document_id, number, type, generation, page_count,
              pages_ok, pages_failed, pages_skipped)
            SELECT documents.id, coalesce(last.number, :first) + 1, 'progress', generation,
              page_count, done.ok, done.failed, done.skipped
            FROM documents
            LEFT JOIN LATERAL (
              SELECT number, created_at FROM document_events
              WHERE document_id = documents.id ORDER BY number DESC LIMIT 1
            ) AS last ON true
            CROSS JOIN LATERAL (
              SELECT count(*) FILTER (WHERE state = 'ok') AS ok,
                count(*) FILTER (WHERE state = 'failed') AS failed,
                count(*) FILTER (WHERE state = 'skipped') AS skipped
              FROM pages WHERE document_id = documents.id
            ) AS done
            WHERE documents.id = :document_id
              AND coalesce(last.created_at, documents.created_at)
                < clock_timestamp() - make_interval(secs => :every_s)
        """),
        {"document_id": document_id, "first": ACCEPTED_NUMBER, "every_s": every_s},
    )


def _told(session: Session, row: Row[Any]) -> Event:
    if row.number is None:
        now: datetime = session.execute(text("SELECT clock_timestamp()")).scalar_one()
        return Event(row.after + 1, EventType.DELETED, now)
    return _event(row)


def _event(row: Any) -> Event:  # noqa: ANN401 - a row of the table, however it was read
    return Event(
        number=row.number,
        type=EventType(row.type),
        at=row.created_at,
        generation=row.generation,
        page_count=row.page_count,
        pages_ok=row.pages_ok,
        pages_failed=row.pages_failed,
        pages_skipped=row.pages_skipped,
        error_code=row.error_code,
    )
