"""What the database of a storm says; a trigger of the storm counts moves to final states."""

from datetime import datetime
from typing import Final

from cli.storm.verdict import STUCK, Found, Problem
from db.engine import Database

# By which the sweep of a storm, which looks every second, has seen to a row that is due.
_OVERDUE_S: Final = 15

_TRIGGER: Final = """
CREATE TABLE storm_final_moves (
  document_id uuid NOT NULL, source text NOT NULL, target text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON storm_final_moves (document_id);
CREATE FUNCTION storm_note_final_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storm_final_moves (document_id, source, target)
  VALUES (NEW.id, OLD.state, NEW.state);
  RETURN NULL;
END $$;
CREATE TRIGGER storm_final_moves AFTER UPDATE OF state ON documents FOR EACH ROW
WHEN (NEW.state IN ('succeeded', 'partly_succeeded', 'failed', 'cancelled'))
EXECUTE FUNCTION storm_note_final_move();
"""

_FOUND: Final = """
SELECT id, idempotency_key, state, error_code, coalesce(moves.count, 0) AS final_moves
FROM documents LEFT JOIN (
  SELECT document_id, count(*) FROM storm_final_moves GROUP BY document_id
) AS moves ON moves.document_id = id
WHERE created_at >= %(since)s ORDER BY id
"""

_OPEN: Final = """
SELECT kind, id, state, worker, lease_expires_at, dispatch_after FROM (
  SELECT 'document' AS kind, id, state, worker, lease_expires_at, dispatch_after FROM documents
  UNION ALL
  SELECT 'chunk', id, state, worker, lease_expires_at, dispatch_after FROM chunks
) AS work
WHERE {condition} ORDER BY kind, id
"""
_ANY: Final = "dispatch_after IS NOT NULL OR state = 'running'"
_OVERDUE: Final = (
    f"least(dispatch_after, lease_expires_at) < now() - make_interval(secs => {_OVERDUE_S})"
)

_COUNT_FINAL: Final = """
SELECT count(finished_at) FROM documents WHERE created_at >= %(since)s
"""

_TABLES: Final = ("documents", "chunks", "pages", "batches", "uploads", "key_usage")


class StormRows:
    """Asks the database of a storm; every method raises ``DatabaseError`` while it is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count_moves(self) -> None:
        """Add the trigger; from now on each move to a final state is counted."""
        with self._database.transaction() as session:
            session.connection().exec_driver_sql(_TRIGGER)

    def now(self) -> datetime:
        """Return the server's time."""
        with self._database.transaction() as session:
            time: datetime = session.connection().exec_driver_sql("SELECT now()").scalar_one()
            return time

    def finished(self, since: datetime) -> int:
        """Return how many of the documents made since then are final."""
        with self._database.transaction() as session:
            found = session.connection().exec_driver_sql(_COUNT_FINAL, {"since": since})
            return int(found.scalar_one())

    def found(self, since: datetime) -> list[Found]:
        """Return the documents made since then, without digests."""
        with self._database.transaction() as session:
            rows = session.connection().exec_driver_sql(_FOUND, {"since": since})
            return [Found(*row) for row in rows]

    def open_rows(self, *, is_overdue: bool) -> list[Problem]:
        """Return rows that somebody still has to look at.

        Args:
            is_overdue: only those that somebody should have looked at long ago: their lease has
                ended, or they are due.
        """
        query = _OPEN.format(condition=_OVERDUE if is_overdue else _ANY)
        with self._database.transaction() as session:
            return [
                Problem(
                    str(row.id),
                    STUCK,
                    f"{row.kind} {row.state} of {row.worker}: lease until {row.lease_expires_at},"
                    f" due {row.dispatch_after}",
                )
                for row in session.connection().exec_driver_sql(query)
            ]

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each table."""
        with self._database.transaction() as session:
            connection = session.connection()
            return {
                table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()  # noqa: S608 - a constant
                for table in _TABLES
            }
