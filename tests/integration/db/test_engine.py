"""What the database's refusals become, on a real one."""

import traceback
from time import monotonic

import psycopg
import pytest
from sqlalchemy import text

from cli.stack.postgres import Postgres
from db.engine import CONNECT_TIMEOUT_S, Database
from db.errors import DatabaseError, DatabaseUnavailableError, DuplicateRowError
from db.migrate import migrate
from tests.support.processes import stopped
from tests.support.rows import make_document

FILENAME = "the-name-of-a-patient.pdf"


def execute(database: Database, *statements: str) -> None:
    with database.transaction() as session:
        for statement in statements:
            session.execute(text(statement))


def backend(database: Database) -> int:
    with database.transaction() as session:
        return session.scalars(text("SELECT pg_backend_pid()")).one()


def test_a_value_that_cannot_be_stored_is_not_in_the_traceback(database: Database) -> None:
    with pytest.raises(DatabaseError) as refusal, database.transaction() as session:
        session.add(make_document(filename=FILENAME, media_type="a\0b"))

    assert FILENAME not in "".join(traceback.format_exception(refusal.value))


def test_a_row_that_is_refused_is_not_in_the_traceback(database: Database) -> None:
    refused = pytest.raises(DatabaseError, match="documents_state")
    with refused as refusal, database.transaction() as session:
        session.add(make_document(filename=FILENAME, state="lost"))

    assert FILENAME not in "".join(traceback.format_exception(refusal.value))


def test_a_key_that_is_there_already_is_not_in_the_traceback(database: Database) -> None:
    with pytest.raises(DuplicateRowError) as refusal, database.transaction() as session:
        session.add_all(make_document(idempotency_key="its-key") for _ in range(2))

    assert "its-key" not in "".join(traceback.format_exception(refusal.value))


def test_a_lock_that_is_not_let_go_is_named(database: Database) -> None:
    with database.transaction() as holder:
        holder.execute(text("LOCK TABLE documents"))

        with pytest.raises(DatabaseUnavailableError, match="locked"):
            execute(database, "SET LOCAL lock_timeout = '50ms'", "LOCK TABLE documents")


def test_a_statement_that_takes_too_long_is_named(database: Database) -> None:
    with pytest.raises(DatabaseUnavailableError, match="statement"):
        execute(database, "SET LOCAL statement_timeout = '50ms'", "SELECT pg_sleep(10)")


def test_a_database_that_is_away_is_not_reachable() -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/none")

    with pytest.raises(DatabaseUnavailableError, match="not reachable"):
        away.check()


def test_a_schema_of_a_newer_version_is_named(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(DatabaseError, match="newer Pagefleet"):
        migrate(database_url)


def test_a_stopped_server_is_waited_for_no_longer_than_told(own_postgres: Postgres) -> None:
    database = Database(own_postgres.url("postgres"), pool_size=1, answer_timeout_s=0.5)
    database.check()

    with stopped(own_postgres.pid):
        began = monotonic()
        with pytest.raises(DatabaseUnavailableError):
            database.check()
        waited_s = monotonic() - began

    assert 0.5 <= waited_s < 0.5 + 1 + CONNECT_TIMEOUT_S + 3
    database.check()
    database.dispose()


def test_a_statement_that_is_only_slow_keeps_its_connection(database_url: str) -> None:
    database = Database(database_url, pool_size=1, answer_timeout_s=0.5)

    before = backend(database)
    with pytest.raises(DatabaseUnavailableError, match="statement"):
        execute(database, "SELECT pg_sleep(10)")

    assert backend(database) == before
    database.dispose()


def test_one_connection_serves_transaction_after_transaction(database_url: str) -> None:
    database = Database(database_url, pool_size=1)

    assert len({backend(database) for _ in range(10)}) == 1
    database.dispose()


def test_connections_that_were_ended_are_replaced(database: Database, database_url: str) -> None:
    other = Database(database_url)
    with other.transaction() as first, other.transaction() as second:
        ended = [
            session.scalars(text("SELECT pg_backend_pid()")).one() for session in (first, second)
        ]
    execute(database, *(f"SELECT pg_terminate_backend({pid}, 5000)" for pid in ended))

    assert backend(other) not in ended
    assert backend(other) not in ended
    other.dispose()


def test_a_server_that_was_restarted_is_found_again(own_postgres: Postgres) -> None:
    database = Database(own_postgres.url("postgres"), pool_size=1)
    database.check()

    own_postgres.stop()
    with pytest.raises(DatabaseUnavailableError):
        database.check()
    own_postgres.start()
    own_postgres.wait_ready()

    database.check()
    database.check()
    database.dispose()
