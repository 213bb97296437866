"""What has to be sent (again): taken by turns, and marked as sent before it is.

Two sweeps may run at once: a row that one of them has locked is passed over by the other.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from db import due_rows
from db.due_rows import Work
from db.fair_share import Lane, Turns
from db.states import Priority

__all__ = [
    "DueWork",
    "Taken",
    "Turns",
    "Work",
    "forget_chord",
    "put_back_unsent",
    "take_due",
    "take_spent",
]

# Rows that are counted in every lane; most lanes get no more turns at a time.
_FIRST_LOOK = 8


@dataclass(frozen=True, slots=True)
class DueWork:
    """A row that somebody has to be told about; ``id`` is a document's, a chunk's or an export's.

    ``attempts`` are the claims that count towards the cap; ``priority`` is the document's;
    ``due_since`` is what was due before the row was marked.
    """

    work: Work
    id: UUID
    document_id: UUID
    generation: int
    attempts: int
    priority: Priority
    lane: Lane
    due_since: datetime
    page_start: int = 0
    page_stop: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """What has its turn, in order; ``left`` are those that wait on, as far as they were counted."""

    due: Sequence[DueWork] = ()
    left: int = 0


def take_due(
    session: Session, work: Work, priority: Priority, *, turns: Turns, room: int, backoff_s: float
) -> Taken:
    """Mark up to ``room`` due rows as sent once more, and return them.

    Tenants take turns, and within a tenant its lanes; in a lane the oldest comes first. The next
    look at each is put off by ``backoff_s`` seconds, doubled with every delivery.
    """
    waiting, planned = _plan(session, work, priority, turns=turns, room=room)
    by_lane: dict[Lane, deque[DueWork]] = {}
    for each, lanes in _by_count(planned).items():
        rows = due_rows.mark_oldest(session, work, priority, lanes, each=each, backoff_s=backoff_s)
        for found in sorted((_due_work(work, row) for row in rows), key=lambda due: due.due_since):
            by_lane.setdefault(found.lane, deque()).append(found)
    # Another sweep may have been faster at some of them.
    due = [by_lane[lane].popleft() for lane in planned if by_lane.get(lane)]
    turns.remember(planned, waiting)
    return Taken(due, sum(waiting.values()) - len(due))


def take_spent(
    session: Session, work: Work, *, max_attempts: int, limit: int, backoff_s: float
) -> list[DueWork]:
    """Mark and return due rows that have used up their attempts; see ``take_due``."""
    rows = due_rows.mark_spent(
        session, work, max_attempts=max_attempts, limit=limit, backoff_s=backoff_s
    )
    return [_due_work(work, row) for row in rows]


def put_back_unsent(session: Session, unsent: Sequence[DueWork]) -> list[DueWork]:
    """Undo the marks of work that was not sent, which costs it neither back-off nor its turn.

    A row that somebody claimed meanwhile, or is changing, is left alone: who waited for one of
    many could block another who has it and waits for the next.

    Returns:
        what was left alone.
    """
    put_back: set[UUID] = set()
    for table in sorted({due_rows.ROWS[work.work].table for work in unsent}):
        rows = [work for work in unsent if due_rows.ROWS[work.work].table == table]
        ids = session.scalars(
            text(f"""
                WITH unsent AS MATERIALIZED (
                  SELECT id AS unsent_id, due_since
                  FROM unnest(CAST(:ids AS uuid[]), CAST(:times AS timestamptz[]))
                    AS marked(marked_id, due_since)
                  JOIN {table} ON id = marked_id
                  WHERE dispatch_after IS NOT NULL
                    AND (lease_expires_at IS NULL OR lease_expires_at < now())
                  FOR NO KEY UPDATE OF {table} SKIP LOCKED
                )
                UPDATE {table}
                SET deliveries = deliveries - 1, dispatch_after = unsent.due_since
                FROM unsent WHERE id = unsent.unsent_id
                RETURNING id
            """),  # noqa: S608 - the tables of due_rows
            {"ids": [work.id for work in rows], "times": [work.due_since for work in rows]},
        )
        put_back.update(ids)
    return [work for work in unsent if work.id not in put_back]


def forget_chord(session: Session, document_id: UUID, generation: int) -> None:
    """Make the chunks of a chord that was not sent, or not wholly, due at once, each by itself."""
    sent_as_chord = {"document_id": document_id, "generation": generation}
    session.execute(
        text(
            "UPDATE documents SET by_chord = false"
            " WHERE id = :document_id AND generation = :generation"
        ),
        sent_as_chord,
    )
    session.execute(
        text(
            "UPDATE chunks SET deliveries = 0, dispatch_after = now()"
            " WHERE document_id = :document_id AND generation = :generation AND state = 'queued'"
        ),
        sent_as_chord,
    )


def _plan(
    session: Session, work: Work, priority: Priority, *, turns: Turns, room: int
) -> tuple[dict[Lane, int], list[Lane]]:
    """Return what waits, and whose turns they are.

    Only lanes that get more turns than were counted in them are counted again: a thousand long
    lanes cost no more than their heads.
    """
    most = min(_FIRST_LOOK, room)
    waiting = due_rows.count(session, work, priority, most=most)
    uncounted = {lane for lane, count in waiting.items() if count == most}
    while True:
        supposed = {lane: room if lane in uncounted else count for lane, count in waiting.items()}
        planned = turns.plan(supposed, room)
        short = [
            lane
            for lane, count in Counter(planned).items()
            if lane in uncounted and count > waiting[lane]
        ]
        if not short:
            return waiting, planned
        waiting |= due_rows.count_in(session, work, priority, short, most=room)
        uncounted.difference_update(short)


def _by_count(planned: Sequence[Lane]) -> dict[int, list[Lane]]:
    """Group lanes by their number of turns, since LIMIT takes no column."""
    by_count: dict[int, list[Lane]] = {}
    for lane, count in Counter(planned).items():
        by_count.setdefault(count, []).append(lane)
    return by_count


def _due_work(work: Work, row: Row[Any]) -> DueWork:
    return DueWork(
        work=work,
        id=row.id,
        document_id=row.document_id,
        generation=row.generation,
        attempts=row.attempts,
        priority=Priority(row.priority),
        lane=Lane(row.tenant, row.lane),
        due_since=row.due_since,
        page_start=row.page_start,
        page_stop=row.page_stop,
    )
