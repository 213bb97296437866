"""Faults of Postgres at a chosen point: the server is held there, and then something is ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.support.fleet import wait_for

# Longer than any wait of a test: whoever sleeps is ended, or let go with the end of its statement.
_HOLD_S = 30
_WAIT_S = 30

_DELAYS = """
CREATE TABLE delays (place text PRIMARY KEY, seconds float);
CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(seconds) FROM delays WHERE place = TG_ARGV[0];
  RETURN NULL;
END $$;
CREATE TRIGGER delay_claim AFTER UPDATE ON chunks FOR EACH ROW
  WHEN (OLD.attempt < NEW.attempt) EXECUTE FUNCTION delay('claim');
CREATE CONSTRAINT TRIGGER delay_commit AFTER UPDATE ON chunks DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (OLD.state <> NEW.state AND NEW.state = 'succeeded')
  EXECUTE FUNCTION delay('commit');
"""

# What pg_stat_activity says of a backend in pg_sleep, and of one that waits for a second server.
_SLEEPS = "PgSleep"
_COMMITTED = "SyncRep"


class HeldPostgres:
    """A look at the server from outside, by a connection that nobody waits for."""

    def __init__(self, url: str) -> None:
        self._url = url

    def install(self) -> None:
        """Make the places at which it can be held: ``claim`` and ``commit`` of a chunk."""
        with self._connect() as connection:
            connection.execute(_DELAYS)

    @contextmanager
    def held_at(self, place: str) -> Iterator[None]:
        """Hold whoever comes to a place; yields as soon as somebody is held there."""
        with self._connect() as connection:
            connection.execute("INSERT INTO delays VALUES (%s, %s)", (place, _HOLD_S))
            try:
                wait_for(place, self._somebody_sleeps, timeout_s=_WAIT_S)
            finally:
                # Who comes next is not held, and it need not be done when the server is back.
                connection.execute("DELETE FROM delays")
        yield

    def end_sleepers(self) -> int:
        """End the connections that are held; return how many there were."""
        return self._count("pg_terminate_backend(pid)", _SLEEPS)

    @contextmanager
    def answers_of_commits_lost(self) -> Iterator[None]:
        """Let each COMMIT wait for a second server, of which there is none, until it is ended.

        What is ended there is committed, and its client does not know.
        """
        self._set_standby("'nobody'")
        try:
            yield
        finally:
            self._set_standby("''")

    def end_commits(self) -> int:
        """End the connections whose COMMIT is done and not answered; return how many."""
        return self._count("pg_terminate_backend(pid)", _COMMITTED)

    def _set_standby(self, names: str) -> None:
        with self._connect() as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
            connection.execute("SELECT pg_reload_conf()")

    def _somebody_sleeps(self) -> bool:
        return self._count("pid", _SLEEPS) > 0

    def _count(self, what: str, wait_event: str) -> int:
        with self._connect() as connection:
            row = connection.execute(
                f"SELECT count({what}) FROM pg_stat_activity"  # noqa: S608 - one of two constants
                " WHERE application_name = 'pagefleet' AND wait_event = %s",
                (wait_event,),
            ).fetchone()
        assert row is not None
        return int(row[0])

    @contextmanager
    def _connect(self) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = local")
            yield connection
