"""Waiting for a transaction that waits for another one."""

import threading

from sqlalchemy import text

from db.engine import Database


def wait_for_somebody_who_waits(database: Database) -> None:
    """Return once a transaction waits for a lock."""
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    for _ in range(500):
        with database.transaction() as session:
            if session.scalar(waiting):
                return
        threading.Event().wait(0.02)
    raise AssertionError("nobody waits")
