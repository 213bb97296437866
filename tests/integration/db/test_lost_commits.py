"""What is known of a transaction whose connection is lost, on a real server."""

import threading
from collections.abc import Iterator
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import text

from db import known_outcome
from db.engine import Database, Session
from db.errors import DatabaseUnavailableError, OutcomeUnknownError
from db.intake_models import Upload
from tests.support.commit_proxy import CommitProxy, commit_proxy
from tests.support.fleet import wait_for
from tests.support.rows import make_document

DEFERRED = """
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON uploads DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION at_commit();
"""


@pytest.fixture
def line(database_url: str) -> Iterator[CommitProxy]:
    with commit_proxy(database_url) as line:
        yield line


@pytest.fixture
def database(line: CommitProxy) -> Iterator[Database]:
    database = Database(line.url)
    yield database
    database.dispose()


def insert(session: Session, upload_id: UUID) -> str:
    session.execute(
        text("INSERT INTO uploads VALUES (:id, now()) ON CONFLICT DO NOTHING"), {"id": upload_id}
    )
    return "inserted"


def stands(session: Session, upload_id: UUID) -> bool:
    return session.get(Upload, upload_id) is not None


def commit(database: Database, upload_id: UUID) -> str:
    return known_outcome.commit(
        database.transaction,
        lambda session: insert(session, upload_id),
        stands=lambda session, _: stands(session, upload_id),
    )


@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_connection_that_is_lost_in_a_commit_leaves_the_outcome_unknown(
    database: Database, line: CommitProxy, *, takes_effect: bool
) -> None:
    upload_id = uuid4()
    line.lose_commit(of="INSERT INTO uploads", takes_effect=takes_effect)

    with pytest.raises(OutcomeUnknownError), database.transaction() as session:
        insert(session, upload_id)

    with database.transaction() as session:
        assert stands(session, upload_id) is takes_effect


def end_backend(session: Session, database_url: str) -> None:
    backend = session.scalar(text("SELECT pg_backend_pid()"))
    with psycopg.connect(database_url) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (backend,))


@pytest.mark.parametrize("is_written_in_block", [True, False])
def test_a_connection_that_is_lost_before_the_commit_changes_nothing(
    database: Database, database_url: str, *, is_written_in_block: bool
) -> None:
    def write() -> None:
        with database.transaction() as session:
            end_backend(session, database_url)
            session.add(make_document())
            if is_written_in_block:
                session.flush()

    with pytest.raises(DatabaseUnavailableError) as refusal:
        write()

    assert type(refusal.value) is DatabaseUnavailableError


def test_a_commit_that_the_server_refuses_is_no_unknown_outcome(
    database: Database, database_url: str
) -> None:
    refuse = DEFERRED.format(body="RAISE EXCEPTION 'x' USING ERRCODE = '40001';")
    with psycopg.connect(database_url) as connection:
        connection.execute(refuse)

    with pytest.raises(DatabaseUnavailableError) as refusal, database.transaction() as session:
        insert(session, uuid4())

    assert type(refusal.value) is DatabaseUnavailableError


@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_change_stands_once_whatever_became_of_its_first_commit(
    database: Database, line: CommitProxy, *, takes_effect: bool
) -> None:
    upload_id = uuid4()
    line.lose_commit(of="INSERT INTO uploads", takes_effect=takes_effect)

    answer = commit(database, upload_id)

    with database.transaction() as session:
        assert stands(session, upload_id)
    assert (answer, line.lost) == ("inserted", 1)


def test_a_backend_that_is_ended_in_a_commit_has_it_done_again(
    database: Database, database_url: str
) -> None:
    upload_id = uuid4()
    with psycopg.connect(database_url) as connection:
        connection.execute(DEFERRED.format(body="PERFORM pg_sleep(seconds) FROM naps;"))
        connection.execute("CREATE TABLE naps AS SELECT 30::float AS seconds")

    def end_sleeper() -> None:
        with psycopg.connect(database_url, autocommit=True) as other:

            def find() -> int | None:
                row = other.execute(
                    "SELECT pid FROM pg_stat_activity"
                    " WHERE wait_event = 'PgSleep' AND datname = current_database()"
                ).fetchone()
                return row and row[0]

            sleeper = wait_for("a COMMIT that sleeps", find, timeout_s=30)
            other.execute("DELETE FROM naps")  # the next one does not
            other.execute("SELECT pg_terminate_backend(%s)", (sleeper,))

    ending = threading.Thread(target=end_sleeper)
    ending.start()
    commit(database, upload_id)
    ending.join()

    with database.transaction() as session:
        assert stands(session, upload_id)


def test_a_database_that_stays_away_is_asked_for_a_while(
    database: Database, line: CommitProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_outcome, "_PAUSES_S", (0.0, 0.01))
    line.lose_commit(of="INSERT INTO uploads", takes_effect=True)
    asked = 0

    def ask(_session: Session, _answer: str) -> bool:
        nonlocal asked
        asked += 1
        raise DatabaseUnavailableError("away")

    with pytest.raises(OutcomeUnknownError):
        known_outcome.commit(
            database.transaction, lambda session: insert(session, uuid4()), stands=ask
        )

    assert asked == 2
