"""What has to hold after any fault, looked up in the database and in the results.

Every document final and its chunks too, each finished once, every result what it is without the
fault, and no row that somebody should have looked at by now.
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

# The chunks of these documents, and the documents themselves, by how often each was finished.
_FINISHED = """
SELECT rows.kind, rows.id, rows.state, count(moves.id) AS times
FROM (
  SELECT 'documents' AS kind, id, generation, state FROM documents WHERE id = ANY(:ids)
  UNION ALL
  SELECT 'chunks', id, generation, state FROM chunks WHERE document_id = ANY(:ids)
) AS rows
LEFT JOIN state_moves AS moves
  ON moves.kind = rows.kind AND moves.id = rows.id AND moves.generation = rows.generation
  AND moves.state = ANY(:final)
GROUP BY rows.kind, rows.id, rows.state
HAVING count(moves.id) <> 1 OR NOT (rows.state = ANY(:final))
"""

_OVERDUE = """
SELECT kind, id, state FROM (
  SELECT 'documents' AS kind, id, state, lease_expires_at, dispatch_after FROM documents
  UNION ALL
  SELECT 'chunks', id, state, lease_expires_at, dispatch_after FROM chunks
) AS rows
WHERE (lease_expires_at < now() AND state IN ('splitting', 'assembling', 'running'))
   OR dispatch_after < now() - make_interval(secs => :patience_s)
"""


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
    """Check that final documents and their chunks came there once, and that nothing is overdue."""
    patience_s = sum(
        float(fleet.environment[f"PAGEFLEET_{name}_S"])
        for name in ("DISPATCH_GRACE", "SWEEP_INTERVAL")
    )
    with fleet.database.transaction() as session:
        wrong = session.execute(
            text(_FINISHED), {"ids": list(ids.values()), "final": list(FINAL_STATES)}
        ).all()
        overdue = session.execute(text(_OVERDUE), {"patience_s": patience_s}).all()
    assert wrong == []
    assert overdue == []
