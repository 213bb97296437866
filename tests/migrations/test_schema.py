"""Migrations lead from an empty database to the models, and no further the second time."""

from typing import Any

import sqlalchemy
from sqlalchemy import text

from db import api_keys, batches, cancelling, chunks, deleting
from db.engine import Database, driver_url
from db.ids import new_id
from db.migrate import migrate
from db.models import Batch
from db.scopes import Scope
from tests.support.rows import TENANT, add_document, add_recognizing_document
from tests.support.schema import differences, go_back


def test_a_migrated_database_has_the_tables_of_the_models(database_url: str) -> None:
    assert differences(database_url) == []


def test_a_database_can_be_migrated_again(database_url: str) -> None:
    migrate(database_url)

    assert differences(database_url) == []


def write(database_url: str, statement: str) -> None:
    engine = sqlalchemy.create_engine(driver_url(database_url))
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def read(database_url: str, query: str) -> list[tuple[Any, ...]]:
    engine = sqlalchemy.create_engine(driver_url(database_url))
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engine.dispose()
    return found


def test_keys_of_before_keep_everything_that_they_could_do(database_url: str) -> None:
    go_back(database_url, "0006")
    write(
        database_url,
        "INSERT INTO api_keys (id, tenant, secret_sha256, name) VALUES ('0123', 'a', 'x', 'old')",
    )

    migrate(database_url)

    found = read(database_url, "SELECT scopes, expires_at, revoked_at FROM api_keys")
    assert found == [(["read", "write", "webhooks"], None, None)]


def test_an_earlier_release_gives_a_narrow_key_no_more_than_it_had(database_url: str) -> None:
    database = Database(database_url)
    with database.transaction() as session:
        api_keys.create(session, tenant=TENANT, name="narrow", scopes=[Scope.READ])
        api_keys.create(session, tenant=TENANT, name="wide")
    database.dispose()

    go_back(database_url, "0006")

    found = read(database_url, "SELECT name, revoked_at IS NULL FROM api_keys ORDER BY name")
    assert found == [("narrow", False), ("wide", True)]


def test_an_earlier_release_finds_nothing_in_the_rows_that_it_does_not_know(
    database_url: str,
) -> None:
    database = Database(database_url)
    with database.transaction() as session:
        isolated, (first, _) = add_recognizing_document(session)
        for _ in range(2):
            chunks.claim(session, first.id, worker="a", lease_s=-1, max_attempts=2)
        spent = chunks.lock_spent(session, first.id, max_attempts=2)
        assert spent is not None
        chunks.isolate(session, spent)
        cancelled, _ = add_recognizing_document(session)
        cancelling.cancel(session, cancelled, tenant=TENANT)
        deleted = add_document(session, state="succeeded", result_key="1/result.json")
        deleting.mark(session, deleted, tenant=TENANT, writers_s=60)
    database.dispose()

    go_back(database_url, "0001")

    documents = read(
        database_url,
        "SELECT id, state, result_key, dispatch_after IS NULL, finished_at IS NULL FROM documents"
        " ORDER BY created_at, id",
    )
    assert documents == [
        (isolated, "recognizing", None, True, True),
        (cancelled, "cancelled", None, True, False),
        (deleted, "cancelled", None, True, False),
    ]
    pages = read(database_url, "SELECT page_start, page_stop, state FROM chunks ORDER BY 1")
    assert pages == [(0, 1, "queued"), (1, 2, "queued"), (2, 3, "queued")]

    migrate(database_url)

    assert differences(database_url) == []
    lanes = read(database_url, "SELECT DISTINCT tenant, lane, is_isolated FROM chunks")
    assert lanes == [(TENANT, "", False)]


def test_an_earlier_release_takes_no_documents_for_a_batch_whose_listing_failed(
    database_url: str,
) -> None:
    database = Database(database_url)
    with database.transaction() as session:
        batches.insert(session, Batch(id=new_id(), tenant=TENANT, name="b", state="failed"))
    database.dispose()

    go_back(database_url, "0006")

    assert read(database_url, "SELECT state FROM batches") == [("finished",)]

    migrate(database_url)

    assert differences(database_url) == []
