"""How Postgres goes about what the project asks of it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from db.engine import Session


def plan_of(session: Session, ask: Callable[[], object]) -> str:
    """Return the plan of the statement that ``ask`` executes; of the first, if there are more."""
    asked: list[tuple[str, Any]] = []

    def note(*call: Any) -> None:
        asked.append((call[2], call[3]))

    connection = session.connection()
    event.listen(connection, "before_cursor_execute", note)
    ask()
    event.remove(connection, "before_cursor_execute", note)
    statement, parameters = asked[0]
    return "\n".join(connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars())
