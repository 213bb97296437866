"""Migrations run beside a fleet that works: no table is locked for longer than a moment."""

import ast
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import db
from db.errors import DatabaseUnavailableError
from db.migrate import migrate
from tests.support.schema import differences, go_back

VERSIONS = Path(db.__file__).parent / "migrations" / "versions"
# Before them nobody had rows.
FIRST_BESIDE_WORK = "0011"
# What a request waits for, and what a worker's renewal may lose of its lease.
PATIENCE = "4s"


def calls(revision: Path, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(revision.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr=called)) if called == name:
                yield node


@pytest.mark.parametrize(
    "revision",
    [each for each in sorted(VERSIONS.glob("0*.py")) if each.name >= FIRST_BESIDE_WORK],
    ids=lambda revision: revision.stem,
)
def test_an_index_of_a_table_that_is_there_is_built_beside_its_writers(revision: Path) -> None:
    made = {ast.literal_eval(call.args[0]) for call in calls(revision, "create_table")}

    for call in calls(revision, "create_index"):
        is_concurrent = any(each.arg == "postgresql_concurrently" for each in call.keywords)
        assert is_concurrent or ast.literal_eval(call.args[1]) in made


def test_a_table_that_is_in_use_holds_up_no_other_table(database_url: str) -> None:
    go_back(database_url, "0008")
    reads = 0
    with psycopg.connect(database_url) as reader, ThreadPoolExecutor(1) as executor:
        reader.execute("LOCK TABLE pages IN ACCESS SHARE MODE")
        migrating = executor.submit(migrate, database_url)
        with psycopg.connect(database_url, autocommit=True) as worker:
            worker.execute(f"SET lock_timeout = '{PATIENCE}'")
            for _ in range(30):
                worker.execute("SELECT * FROM api_keys")
                worker.execute("UPDATE documents SET priority = priority")
                worker.execute("UPDATE batches SET name = name")
                reads += 1
                threading.Event().wait(0.1)
        assert not migrating.done()
        reader.rollback()
        migrating.result(timeout=60)

    assert reads == 30
    assert differences(database_url) == []


def test_a_table_that_stays_in_use_is_named_and_the_rest_is_done(database_url: str) -> None:
    go_back(database_url, "0008")
    with psycopg.connect(database_url) as reader:
        reader.execute("LOCK TABLE pages IN ACCESS SHARE MODE")
        with pytest.raises(DatabaseUnavailableError, match="locked"):
            migrate(database_url, lock_tries=1)
        version = reader.execute("SELECT version_num FROM alembic_version").fetchone()

    assert version == ("0012",)
    migrate(database_url)
    assert differences(database_url) == []


def test_an_index_that_broke_off_is_built_anew(database_url: str) -> None:
    go_back(database_url, "0013")
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE INDEX ix_pages_content_key ON pages (content_key)")
        connection.execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'ix_pages_content_key'::regclass"
        )

    migrate(database_url)

    with psycopg.connect(database_url) as connection:
        invalid = connection.execute("SELECT indexrelid FROM pg_index WHERE NOT indisvalid")
        assert invalid.fetchall() == []
    assert differences(database_url) == []


def test_two_that_migrate_at_once_do_it_once(database_url: str) -> None:
    go_back(database_url, "0008")

    with ThreadPoolExecutor(2) as executor:
        for migrating in [executor.submit(migrate, database_url) for _ in range(2)]:
            migrating.result(timeout=120)

    assert differences(database_url) == []
