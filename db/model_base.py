"""What all tables share.

Times are UTC; states are text with a CHECK, so that adding one is a migration.

``dispatch_after`` makes a row its own outbox: it says when somebody should look at the row
again, and is NULL exactly when nobody needs to. ``attempt`` counts claims and is the fencing
token of the work that a claim starts; ``excused`` counts those claims that failed through no
fault of the work, so that an outage of an hour does not use up the attempts of a document.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, DateTime, Index, MetaData, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Model(MappedAsDataclass, DeclarativeBase, kw_only=True):
    """Root of the mapped classes."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads this class attribute by name
        str: Text(),
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB(),
    }


class Leased(MappedAsDataclass, kw_only=True):
    """What a row has that workers are told of and claim; the module says what the columns mean."""

    attempt: Mapped[int] = mapped_column(default=0)
    excused: Mapped[int] = mapped_column(default=0)
    deliveries: Mapped[int] = mapped_column(default=0)
    dispatch_after: Mapped[datetime | None] = mapped_column(default=None)
    lease_expires_at: Mapped[datetime | None] = mapped_column(default=None)
    worker: Mapped[str | None] = mapped_column(default=None)


def one_of(column: str, values: type[StrEnum]) -> CheckConstraint:
    """Let a column have the values of an enumeration alone."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def outbox_index(name: str, *, states: str = "") -> Index:
    """Index only the rows that somebody has to look at: final rows, by far the most, stay out.

    Its order lets the sweep go from lane to lane without reading what waits in them. A lane is
    what shares a tenant's turns fairly: one batch, or all documents that belong to none.
    """
    is_due = "dispatch_after IS NOT NULL"
    return Index(
        name,
        "priority",
        "tenant",
        "lane",
        "dispatch_after",
        postgresql_where=text(f"{is_due} AND state IN ({states})" if states else is_due),
    )


def tried_index(table: str) -> Index:
    """Index the few rows that may have used up their attempts: a full queue does not hide them."""
    return Index(
        f"ix_{table}_tried",
        "dispatch_after",
        postgresql_where=text("dispatch_after IS NOT NULL AND attempt > excused"),
    )
