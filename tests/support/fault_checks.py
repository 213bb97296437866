"""What has to hold after any fault, looked up in the database and in the results.

Every document final, its chunks and pages too, each of them once and with no deadline left, and
every result what it is without the fault.
"""

import json
from collections.abc import Iterable, Mapping
from uuid import UUID

from sqlalchemy import text

from db.engine import Database
from db.states import (
    FINAL_DOCUMENT_STATES,
    OPEN_CHUNK_STATES,
    OPEN_DOCUMENT_STATES,
    ChunkState,
    PageState,
)
from tests.support.fleet import Fleet

_OPEN = {*OPEN_DOCUMENT_STATES, *OPEN_CHUNK_STATES, PageState.QUEUED}
_FINAL_STATES = sorted({*FINAL_DOCUMENT_STATES, *ChunkState, *PageState} - _OPEN)

# Every move of a state, as the database saw it: what is done twice leaves two of them. A final row
# that gets another result has come to its end once more.
_LOG = """
CREATE TABLE moves (kind text, id text, generation int, source text, target text);
CREATE FUNCTION log_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO moves VALUES (
    TG_TABLE_NAME,
    CASE TG_TABLE_NAME
      WHEN 'pages' THEN to_jsonb(NEW)->>'document_id' || ' ' || (to_jsonb(NEW)->>'page_index')
      ELSE to_jsonb(NEW)->>'id'
    END,
    NEW.generation,
    OLD.state,
    NEW.state
  );
  RETURN NULL;
END $$;
CREATE TRIGGER log_moves AFTER UPDATE ON documents FOR EACH ROW
  WHEN (OLD.state <> NEW.state OR OLD.result_key IS DISTINCT FROM NEW.result_key
    OR OLD.finished_at IS DISTINCT FROM NEW.finished_at) EXECUTE FUNCTION log_move();
CREATE TRIGGER log_moves AFTER UPDATE ON chunks FOR EACH ROW
  WHEN (OLD.state <> NEW.state OR OLD.result_key IS DISTINCT FROM NEW.result_key)
  EXECUTE FUNCTION log_move();
CREATE TRIGGER log_moves AFTER UPDATE ON pages FOR EACH ROW EXECUTE FUNCTION log_move();
"""

_NOT_ENDED_ONCE = """
SELECT ended.kind, ended.id, ended.state, count(moves.id) AS times FROM (
  SELECT 'documents' AS kind, id::text, generation, state
  FROM documents WHERE id = ANY(:ids)
  UNION ALL
  SELECT 'chunks', id::text, generation, state
  FROM chunks WHERE document_id = ANY(:ids)
  UNION ALL
  SELECT 'pages', document_id::text || ' ' || page_index, generation, state
  FROM pages WHERE document_id = ANY(:ids)
) AS ended
LEFT JOIN moves ON moves.kind = ended.kind AND moves.id = ended.id
  AND moves.generation = ended.generation AND moves.target = ANY(:final)
GROUP BY ended.kind, ended.id, ended.state
HAVING count(moves.id) <> 1 OR NOT (ended.state = ANY(:final))
"""

# A final row has no deadline, so that nobody looks at it again, and nobody works on it.
_STILL_DUE = """
SELECT 'document', id, state FROM documents
WHERE id = ANY(:ids)
  AND (dispatch_after IS NOT NULL OR lease_expires_at IS NOT NULL OR worker IS NOT NULL)
UNION ALL
SELECT 'chunk', id, state FROM chunks
WHERE document_id = ANY(:ids)
  AND (dispatch_after IS NOT NULL OR lease_expires_at IS NOT NULL OR worker IS NOT NULL)
"""


def log_moves(database: Database) -> None:
    """Have the database write down each move of a document, chunk or page from now on."""
    with database.transaction() as session:
        session.execute(text(_LOG))


def forget_documents(database: Database) -> None:
    """Remove all documents, and what was written down of their moves."""
    with database.transaction() as session:
        session.execute(text("TRUNCATE moves, documents CASCADE"))


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
    check_ended_once(fleet.database, ids.values())
    assert fleet.ended() == []


def check_ended_once(database: Database, document_ids: Iterable[UUID]) -> None:
    """Check that documents, chunks and pages are final, came there once, and are nobody's."""
    these = {"ids": list(document_ids)}
    with database.transaction() as session:
        wrong = session.execute(text(_NOT_ENDED_ONCE), {**these, "final": _FINAL_STATES}).all()
        due = session.execute(text(_STILL_DUE), these).all()
    assert wrong == []
    assert due == []
