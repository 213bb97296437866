"""The SQL of the outbox: what is due, lane by lane, found without reading what waits in a lane.

A partial index in the order (priority, tenant, lane, dispatch_after) holds the rows that somebody
has to look at. Going from lane to lane is one step in it each, and so is the head of a lane.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from db.fair_share import Lane
from db.states import Priority


class Work(StrEnum):
    """What a due row is waiting for."""

    SPLIT = "split"
    RECOGNIZE = "recognize"
    ASSEMBLE = "assemble"
    EXPORT = "export"


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one kind of work; ``where`` is the predicate of their partial index."""

    table: str
    where: str
    columns: str

    @property
    def due(self) -> str:
        return f"{self.table} WHERE priority = :priority AND {self.where}"


_DOCUMENT_COLUMNS = "id, id AS document_id, generation, attempt - excused AS attempts, priority"

ROWS: Mapping[Work, _Rows] = {
    Work.SPLIT: _Rows(
        "documents",
        "dispatch_after IS NOT NULL AND state IN ('queued', 'splitting')",
        f"{_DOCUMENT_COLUMNS}, 0 AS page_start, 0 AS page_stop",
    ),
    Work.RECOGNIZE: _Rows(
        "chunks",
        "dispatch_after IS NOT NULL",
        "id, document_id, generation, attempt - excused AS attempts, priority,"
        " page_start, page_stop",
    ),
    Work.ASSEMBLE: _Rows(
        "documents",
        "dispatch_after IS NOT NULL AND state IN ('recognizing', 'assembling')",
        f"{_DOCUMENT_COLUMNS}, 0 AS page_start, 0 AS page_stop",
    ),
    Work.EXPORT: _Rows(
        "exports",
        "dispatch_after IS NOT NULL",
        "id, document_id, generation, attempt - excused AS attempts, priority,"
        " 0 AS page_start, 0 AS page_stop",
    ),
}

# A lane of bulk documents with chunks to send has work; one more split would only make one more
# document half done.
_HAS_NO_CHUNKS_DUE = """
AND NOT EXISTS (
  SELECT FROM chunks
  WHERE priority = :priority AND tenant = lanes.tenant AND lane = lanes.lane
    AND dispatch_after <= now()
)
"""


def count(session: Session, work: Work, priority: Priority, *, most: int) -> dict[Lane, int]:
    """Return the lanes in which rows are due, and how many are, counted up to ``most``.

    Bulk splits of a lane do not count while chunks of it are due.
    """
    due = ROWS[work].due
    held_back = work is Work.SPLIT and priority is Priority.BULK
    rows = session.execute(
        text(f"""
            WITH RECURSIVE lanes AS (
              (SELECT tenant, lane FROM {due} ORDER BY tenant, lane LIMIT 1)
              UNION ALL
              SELECT following.tenant, following.lane
              FROM lanes CROSS JOIN LATERAL (
                SELECT tenant, lane FROM {due} AND (tenant, lane) > (lanes.tenant, lanes.lane)
                ORDER BY tenant, lane LIMIT 1
              ) AS following
            )
            SELECT lanes.tenant, lanes.lane, heads.waiting
            FROM lanes CROSS JOIN LATERAL ({_counted(due, "lanes")}) AS heads
            WHERE heads.waiting > 0 {_HAS_NO_CHUNKS_DUE if held_back else ""}
        """),  # noqa: S608 - put together from the constants above
        {"priority": priority.value, "most": most},
    )
    return {Lane(row.tenant, row.lane): row.waiting for row in rows}


def count_in(
    session: Session, work: Work, priority: Priority, lanes: Sequence[Lane], *, most: int
) -> dict[Lane, int]:
    """Return how many rows of these lanes are due, counted up to ``most``."""
    due = ROWS[work].due
    rows = session.execute(
        text(f"""
            SELECT lanes.tenant, lanes.lane, heads.waiting
            FROM unnest(CAST(:tenants AS text[]), CAST(:names AS text[])) AS lanes(tenant, lane)
            CROSS JOIN LATERAL ({_counted(due, "lanes")}) AS heads
        """),  # noqa: S608 - put together from the constants above
        {"priority": priority.value, "most": most, **_lists(lanes)},
    )
    return {Lane(row.tenant, row.lane): row.waiting for row in rows}


def mark_oldest(
    session: Session,
    work: Work,
    priority: Priority,
    lanes: Sequence[Lane],
    *,
    each: int,
    backoff_s: float,
) -> Sequence[Row[Any]]:
    """Mark the ``each`` oldest due rows of every lane as sent once more, and return them.

    A row that another sweep has locked is passed over, so one that hangs holds up nobody.
    """
    rows = ROWS[work]
    return session.execute(
        text(f"""
            WITH due AS MATERIALIZED (
              SELECT heads.id AS due_id, heads.dispatch_after AS due_since
              FROM unnest(CAST(:tenants AS text[]), CAST(:names AS text[])) AS lanes(tenant, lane)
              CROSS JOIN LATERAL (
                SELECT id, dispatch_after FROM {rows.due} {_IN_LANE.format(lanes="lanes")}
                ORDER BY dispatch_after LIMIT :each FOR UPDATE SKIP LOCKED
              ) AS heads
            )
            {_marked(rows)}
        """),  # noqa: S608 - put together from the constants above
        {"priority": priority.value, "each": each, "backoff_s": backoff_s, **_lists(lanes)},
    ).all()


def mark_spent(
    session: Session, work: Work, *, max_attempts: int, limit: int, backoff_s: float
) -> Sequence[Row[Any]]:
    """Mark due rows that have used up their attempts, whatever their lane, and return them."""
    rows = ROWS[work]
    return session.execute(
        text(f"""
            WITH due AS MATERIALIZED (
              SELECT id AS due_id, dispatch_after AS due_since FROM {rows.table}
              WHERE {rows.where} AND attempt > excused AND attempt - excused >= :max_attempts
                AND dispatch_after <= now()
              ORDER BY dispatch_after LIMIT :limit FOR UPDATE SKIP LOCKED
            )
            {_marked(rows)}
        """),  # noqa: S608 - put together from the constants above
        {"max_attempts": max_attempts, "limit": limit, "backoff_s": backoff_s},
    ).all()


_IN_LANE = "AND tenant = {lanes}.tenant AND lane = {lanes}.lane AND dispatch_after <= now()"


def _counted(due: str, lanes: str) -> str:
    return (
        f"SELECT count(*) AS waiting FROM (SELECT FROM {due} {_IN_LANE.format(lanes=lanes)}"  # noqa: S608 - put together from constants
        " ORDER BY dispatch_after LIMIT :most) AS head"
    )


def _marked(rows: _Rows) -> str:
    """Return the UPDATE of the rows named in ``due``.

    The wait doubles with every delivery, up to 64 times: a sweep that re-sends at a fixed pace
    floods a queue that is merely long.
    """
    return f"""
        UPDATE {rows.table}
        SET deliveries = deliveries + 1,
            dispatch_after = now()
              + make_interval(secs => :backoff_s) * power(2, least(deliveries, 6))
        FROM due WHERE id = due.due_id
        RETURNING {rows.columns}, tenant, lane, due.due_since
    """  # noqa: S608 - put together from the constants above


def _lists(lanes: Sequence[Lane]) -> dict[str, list[str]]:
    return {"tenants": [lane.tenant for lane in lanes], "names": [lane.name for lane in lanes]}
