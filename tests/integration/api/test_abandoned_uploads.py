"""Uploads that nobody finishes: their objects are found and removed, and no others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
import pytest
from sqlalchemy import select, text, update

from db import uploads
from db.engine import Database
from db.ids import new_id
from db.intake_models import Upload
from storage import keys
from storage.object_store import ObjectStore
from storage.s3 import S3ObjectStore
from tests.support.api_server import (
    RunningApi,
    Serve,
    client_of,
    documents_in,
    keys_in,
    make_key,
    served_in_process,
    wait_until,
)
from tests.support.services import S3Bucket
from tests.support.stores import StoreWithACallback
from workers.clear_storage import clear_storage
from workers.work_rules import WorkRules

PDF = b"%PDF-1.7\n" + bytes(2_000)
RULES = WorkRules(
    worker="test:1",
    lease_s=60,
    max_attempts=3,
    retry_delay_s=5,
    dispatch_grace_s=30,
    queue_limit=256,
)


def submit(client: httpx.Client) -> httpx.Response:
    return client.post("/v1/documents", files={"file": ("a.pdf", PDF)})


def noted(database: Database) -> list[UUID]:
    with database.transaction() as session:
        return list(session.scalars(select(Upload.document_id)))


def let_expire(database: Database) -> None:
    with database.transaction() as session:
        session.execute(update(Upload).values(expires_at=text("now() - interval '1 s'")))


def clear(database: Database, store: ObjectStore) -> None:
    clear_storage(transaction=database.transaction, store=store, rules=RULES)


@contextmanager
def no_document_can_be_added(database: Database) -> Iterator[None]:
    """Let inserts of documents wait as long as the block lasts."""
    with database.transaction() as session:
        session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        session.execute(text("LOCK TABLE documents IN EXCLUSIVE MODE"))
        yield


def test_an_accepted_document_leaves_no_note(api: RunningApi) -> None:
    assert submit(api.client).status_code == 202

    let_expire(api.database)
    clear(api.database, api.store)

    assert noted(api.database) == []
    assert len(keys_in(api.store)) == 1


def test_what_an_api_that_was_killed_before_its_commit_has_stored_is_removed(
    database: Database,
    store: S3ObjectStore,
    database_url: str,
    redis_url: str,
    s3_bucket: S3Bucket,
) -> None:
    key = make_key(database, "archive")
    with (
        served_in_process(database_url=database_url, redis_url=redis_url, bucket=s3_bucket) as (
            url,
            process,
        ),
        client_of(url, key) as client,
    ):
        with no_document_can_be_added(database):
            upload = threading.Thread(target=_submit_in_vain, args=[client])
            upload.start()
            wait_until(lambda: bool(keys_in(store)), what="the object")
            process.kill()
            upload.join()
        # Its transaction ends when its server finds nobody to talk to any more.
        wait_until(lambda: len(noted(database)) == 1, what="the note")
    clear(database, store)
    left_before_it_expires = keys_in(store)

    let_expire(database)
    clear(database, store)

    assert documents_in(database) == []
    assert len(left_before_it_expires) == 1
    assert keys_in(store) == []
    assert noted(database) == []


def _submit_in_vain(client: httpx.Client) -> None:
    with pytest.raises(httpx.TransportError):
        submit(client)


def test_an_upload_that_has_expired_is_refused_and_leaves_nothing(
    serve: Serve, database: Database
) -> None:
    store = StoreWithACallback(then=lambda: let_expire(database))

    with serve(store=store) as api:
        answer = submit(api.client)

    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert documents_in(database) == []
    assert keys_in(store) == []


def test_a_document_that_is_being_added_when_its_note_expires_keeps_its_object(
    database: Database,
) -> None:
    document_id = new_id()
    with database.transaction() as session:
        uploads.begin(session, document_id, expires_s=0.3)

    with database.transaction() as adding:
        is_in_time = uploads.end(adding, document_id)
        threading.Event().wait(0.4)
        with database.transaction() as session:
            seen_meanwhile = uploads.expired(session, limit=10)
    with database.transaction() as session:
        seen_afterwards = uploads.expired(session, limit=10)

    assert is_in_time
    assert (list(seen_meanwhile), list(seen_afterwards)) == ([], [])


def test_a_note_that_has_expired_once_is_never_good_again(database: Database) -> None:
    document_id = new_id()

    with database.transaction() as session:
        uploads.begin(session, document_id, expires_s=0)
        is_in_time = uploads.end(session, document_id)

    assert not is_in_time


def test_a_round_that_dies_between_objects_and_notes_is_done_again(
    database: Database, store: S3ObjectStore
) -> None:
    document_id = new_id()
    with database.transaction() as session:
        uploads.begin(session, document_id, expires_s=-1)
    store.put(keys.source_key(document_id), PDF, media_type="application/pdf")
    with database.transaction() as session:
        taken = uploads.expired(session, limit=10)
    store.delete([keys.source_key(document_id)])  # and the process is gone

    clear(database, store)

    assert list(taken) == [document_id]
    assert noted(database) == []
