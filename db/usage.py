"""What the database itself counts: rows written, room taken, connections."""

from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from db.model_base import Model
from db.models import Document


@dataclass(frozen=True, slots=True)
class DatabaseUsage:
    """Counters of one database since it was made; ``wal_bytes`` is the whole server's."""

    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    transactions: int
    wal_bytes: int
    size_bytes: int
    connections: int


def database_usage(session: Session) -> DatabaseUsage:
    """Ask the server for the counters of the connected database."""
    row = session.execute(
        text(
            "SELECT tup_inserted, tup_updated, tup_deleted, xact_commit,"
            " pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,"
            " pg_database_size(datname), numbackends"
            " FROM pg_stat_database WHERE datname = current_database()"
        )
    ).one()
    return DatabaseUsage(*row)


def table_bytes(session: Session) -> dict[str, int]:
    """Return what each table takes on disk, with its indexes."""
    return {
        name: session.scalar(select(func.pg_total_relation_size(name))) or 0
        for name in Model.metadata.tables
    }


def finish_times_s(session: Session) -> list[float]:
    """Return when each finished document of all tenants was finished, in order, as Unix time."""
    found = session.scalars(
        select(func.extract("epoch", Document.finished_at))
        .where(Document.finished_at.is_not(None))
        .order_by(Document.finished_at)
    )
    return [float(each) for each in found]


def count_finished(session: Session) -> int:
    """Count the finished documents of all tenants."""
    return session.scalar(select(func.count(Document.finished_at))) or 0
