"""What has to hold after any fault, looked up in the database and in the results.

Every document final and its chunks too, each finished once and with no deadline left, and every
result what it is without the fault.
"""

import json
from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import text

from db.engine import Database
from tests.support.fleet import Fleet

FINAL_STATES = ("succeeded", "partly_succeeded", "failed", "cancelled", "isolated")

_MOVES = """
CREATE TABLE state_moves (number bigserial, kind text, id uuid, generation int, state text);
CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO state_moves (kind, id, generation, state)
  VALUES (TG_TABLE_NAME, NEW.id, NEW.generation, NEW.state);
  RETURN NULL;
END $$;
CREATE TRIGGER note_move AFTER UPDATE ON documents FOR EACH ROW
  WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION note_move();
CREATE TRIGGER note_move AFTER UPDATE ON chunks FOR EACH ROW
  WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION note_move();
"""

_ROWS = """(
  SELECT 'documents' AS kind, id, generation, state, lease_expires_at, dispatch_after
  FROM documents WHERE id = ANY(:ids)
  UNION ALL
  SELECT 'chunks', id, generation, state, lease_expires_at, dispatch_after
  FROM chunks WHERE document_id = ANY(:ids)
) AS rows"""

_NOT_FINISHED_ONCE = f"""
SELECT rows.kind, rows.id, rows.state, count(moves.id) AS times FROM {_ROWS}
LEFT JOIN state_moves AS moves
  ON moves.kind = rows.kind AND moves.id = rows.id AND moves.generation = rows.generation
  AND moves.state = ANY(:final)
GROUP BY rows.kind, rows.id, rows.state
HAVING count(moves.id) <> 1 OR NOT (rows.state = ANY(:final))
"""  # noqa: S608 - put together from the constant above

# A final row has no deadline, so that nobody looks at it again.
_STILL_DUE = f"""
SELECT kind, id, state FROM {_ROWS}
WHERE lease_expires_at IS NOT NULL OR dispatch_after IS NOT NULL
"""  # noqa: S608 - put together from the constant above


def log_moves(database: Database) -> None:
    """Have the database write down each move of a document or chunk from now on."""
    with database.transaction() as session:
        session.execute(text(_MOVES))


def results_as_bytes(
    fleet: Fleet, ids: Mapping[str, UUID], *, timeout_s: float
) -> dict[str, bytes]:
    """Wait for documents and return their results by file name, short of what every run has."""
    found = fleet.results(dict(ids), timeout_s=timeout_s)
    return {name: json.dumps(result).encode() for name, result in found.items()}


def check_nothing_lost_or_done_twice(
    fleet: Fleet, ids: Mapping[str, UUID], expected: Mapping[str, bytes], *, timeout_s: float
) -> None:
    """Wait for documents and check everything; ``expected`` are results of a run without fault."""
    assert results_as_bytes(fleet, ids, timeout_s=timeout_s) == dict(expected)
    check_finished_once(fleet, ids)
    assert fleet.ended() == []


def check_finished_once(fleet: Fleet, ids: Mapping[str, UUID]) -> None:
    """Check that final documents and their chunks came there once, and that none has a deadline."""
    these = {"ids": list(ids.values())}
    with fleet.database.transaction() as session:
        wrong = session.execute(
            text(_NOT_FINISHED_ONCE), {**these, "final": list(FINAL_STATES)}
        ).all()
        due = session.execute(text(_STILL_DUE), these).all()
    assert wrong == []
    assert due == []
