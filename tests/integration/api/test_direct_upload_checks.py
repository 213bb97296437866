"""Uploads that take long to be read, and processes and servers that fail meanwhile."""

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import select, update

from db import direct_uploads
from db.engine import Database
from db.intake_models import DirectUpload
from storage import keys
from storage.errors import StorageUnavailableError
from storage.memory import InMemoryObjectStore
from tests.support.api_server import RunningApi, Serve, documents_in, wait_until
from tests.support.direct_uploads import announced, clear, complete, let_pass, rows_in, sent

PDF = b"%PDF-1.7\n" + bytes(2_000)
DAY_S = 86_400.0
HURRIED = {"api_answer_timeout_s": 6.0}


class SlowStore(InMemoryObjectStore):
    """Yields the first part of an object, and then waits."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def stream(self, key: str, **_arguments: Any) -> Iterator[bytes]:
        body = self.get(key)
        yield body[:1_024]
        self.may_go_on.wait(60)
        yield body[1_024:]


class StoreThatBreaksOff(InMemoryObjectStore):
    """Breaks off in the middle of an object, so often."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def stream(self, key: str, **_arguments: Any) -> Iterator[bytes]:
        body = self.get(key)
        if not self.times:
            yield body
            return
        self.times -= 1
        yield body[:1_024]
        raise StorageUnavailableError(key)


def send_to_memory(api: RunningApi, store: InMemoryObjectStore) -> dict[str, Any]:
    upload = announced(api.client, PDF)
    with api.database.transaction() as session:
        parts_id = session.scalars(select(DirectUpload.parts_id)).one()
    assert parts_id is not None
    store.part_uploads.receive(keys.source_key(UUID(upload["id"])), parts_id, 1, PDF)
    return upload


def state_of(api: RunningApi, upload: dict[str, Any]) -> str:
    return str(api.client.get(upload["links"]["self"]).json()["state"])


def test_a_check_that_outlasts_its_request_goes_on_behind_it(
    serve: Serve, database: Database
) -> None:
    store = SlowStore()
    with serve(store=store, settings=HURRIED) as api:
        upload = send_to_memory(api, store)

        first, second = complete(api.client, upload), complete(api.client, upload)
        state = state_of(api, upload)
        aborted = api.client.delete(upload["links"]["self"])
        clear(database, store)
        store.may_go_on.set()
        wait_until(lambda: bool(documents_in(database)), what="the document")
        last = complete(api.client, upload)

    for answer in (first, second, aborted):
        assert (answer.status_code, answer.json()["code"]) == (409, "upload_checking")
        assert answer.headers["Retry-After"] == "2"
    assert state == "checking"
    assert (last.status_code, last.json()["id"]) == (202, upload["id"])
    assert len(documents_in(database)) == 1


def test_what_is_read_when_its_time_is_over_becomes_a_document(
    serve: Serve, database: Database
) -> None:
    store = SlowStore()
    with serve(store=store, settings=HURRIED) as api:
        upload = send_to_memory(api, store)
        complete(api.client, upload)
        with database.transaction() as session:
            session.execute(
                update(DirectUpload).values(
                    expires_at=DirectUpload.created_at, clear_after=DirectUpload.created_at
                )
            )
        clear(database, store)
        store.may_go_on.set()
        wait_until(lambda: bool(documents_in(database)), what="the document")

    assert store.get(keys.source_key(UUID(upload["id"]))) == PDF


def test_who_was_held_up_past_his_lease_makes_no_document_of_what_is_gone(
    serve: Serve, database: Database
) -> None:
    store = SlowStore()
    with structlog.testing.capture_logs() as lines, serve(store=store, settings=HURRIED) as api:
        upload = send_to_memory(api, store)
        complete(api.client, upload)
        let_pass(database, DAY_S + 1)
        clear(database, store)
        store.may_go_on.set()
        wait_until(
            lambda: "call failed in the background" in [line["event"] for line in lines],
            what="the end of the check",
        )
        answer = complete(api.client, upload)

    assert answer.status_code == 404
    assert documents_in(database) == []
    assert list(store.list("")) == []


def test_a_store_that_breaks_off_is_asked_again(serve: Serve) -> None:
    store = StoreThatBreaksOff(times=1)
    with serve(store=store) as api:
        upload = send_to_memory(api, store)

        first, state = complete(api.client, upload), state_of(api, upload)
        again = complete(api.client, upload)

    assert (first.status_code, first.json()["code"]) == (503, "storage_unavailable")
    assert state == "open"
    assert again.status_code == 202


def test_a_process_that_died_in_a_check_leaves_it_to_the_next(
    api: RunningApi, database: Database
) -> None:
    upload = sent(api.client, PDF)
    with database.transaction() as session:
        direct_uploads.begin_check(session, UUID(upload["id"]), lease_s=3_600)
    while_it_lives = complete(api.client, upload)

    let_pass(database, 3_601)
    afterwards = complete(api.client, upload)

    assert (while_it_lives.status_code, while_it_lives.json()["code"]) == (409, "upload_checking")
    assert afterwards.status_code == 202


def test_an_object_that_a_process_that_died_has_put_together_is_not_sent_again(
    api: RunningApi, database: Database
) -> None:
    upload = sent(api.client, PDF)
    key = keys.source_key(UUID(upload["id"]))
    with database.transaction() as session:
        parts_id = session.scalars(select(DirectUpload.parts_id)).one() or ""
    parts = api.store.part_uploads
    parts.finish(key, parts_id, list(parts.list(key, parts_id)))

    page = api.client.get(upload["links"]["parts"]).json()
    answer = complete(api.client, upload)

    assert [part["is_stored"] for part in page["parts"]] == [True]
    assert answer.status_code == 202


def test_parts_that_a_rule_of_the_bucket_has_removed_end_the_upload(
    api: RunningApi, database: Database
) -> None:
    upload = sent(api.client, PDF)
    api.store.part_uploads.abort(keys.source_key(UUID(upload["id"])), None)

    answer = complete(api.client, upload)

    assert (answer.status_code, answer.json()["code"]) == (422, "upload_mismatch")
    assert state_of(api, upload) == "failed"
    assert rows_in(database) == [UUID(upload["id"])]
