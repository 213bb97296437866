import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest
import structlog

from db import cancelling
from db.engine import Database, Session, Transaction
from db.errors import DatabaseUnavailableError, OutcomeUnknownError
from db.models import Document
from db.states import Priority
from storage import keys
from storage.errors import StorageUnavailableError
from storage.object_store import ObjectStore, ObjectWriter
from storage.s3 import S3ObjectStore
from tests.support.api_server import (
    RunningApi,
    Serve,
    documents_in,
    free_port,
    keys_in,
    open_store,
    wait_until,
)
from tests.support.backlog import add_batch
from tests.support.commit_proxy import commit_proxy
from tests.support.services import S3Bucket, s3_client
from tests.support.stores import StoreWithACallback
from workers.dispatch import DispatchError

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 37_000  # more than one part of an S3 upload


def submit(client: httpx.Client) -> httpx.Response:
    return client.post("/v1/documents", files={"file": ("ledger.pdf", PDF)})


class StoreThatFailsAt:
    """Takes the first bytes of an object, and then is away."""

    def __init__(self, store: ObjectStore, size_bytes: int) -> None:
        self._store = store
        self._left_bytes = size_bytes

    @contextmanager
    def writer(self, key: str, *, media_type: str) -> Iterator[ObjectWriter]:
        with self._store.writer(key, media_type=media_type) as self._writer:
            yield self

    def write(self, part: bytes) -> None:
        self._left_bytes -= len(part)
        if self._left_bytes < 0:
            raise StorageUnavailableError("away")
        self._writer.write(part)


class DatabaseThatLeaves:
    """Is away from when ``leave`` is called."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._is_away = False

    def leave(self) -> None:
        self._is_away = True

    def __call__(self) -> AbstractContextManager[Session]:
        if self._is_away:
            raise DatabaseUnavailableError("away")
        return self._transaction()


class DatabaseThatLosesACommit:
    """Loses the connection in the transaction that inserts a document, before or after COMMIT."""

    def __init__(self, transaction: Transaction, *, is_committed: bool) -> None:
        self._transaction = transaction
        self._is_committed = is_committed
        self._is_lost = False

    @contextmanager
    def __call__(self) -> Iterator[Session]:
        with self._transaction() as session:
            yield session
            rows = session.identity_map.values()
            loses = not self._is_lost and any(isinstance(row, Document) for row in rows)
            self._is_lost = self._is_lost or loses
            if loses and not self._is_committed:
                raise OutcomeUnknownError("lost before COMMIT")
        if loses:
            raise OutcomeUnknownError("lost after COMMIT")


def start_upload(api: RunningApi) -> socket.socket:
    """Send the head of an upload, and leave its body to the test once the API waits for it."""
    address = urlsplit(api.url)
    head = (
        f"POST /v1/documents HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {api.client.headers['Authorization']}\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(PDF) + 500}\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    connection.sendall(head.encode())
    assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
    connection.sendall(
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
    )
    return connection


def test_a_client_that_leaves_in_mid_upload_leaves_nothing(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    s3 = s3_client(s3_bucket)

    def unfinished() -> list[object]:
        return list(s3.list_multipart_uploads(Bucket=s3_bucket.name).get("Uploads", []))

    with structlog.testing.capture_logs() as lines:
        with start_upload(api) as connection:
            connection.sendall(PDF)
            wait_until(lambda: len(unfinished()) == 1, what="the upload has begun")
        wait_until(
            lambda: any(line["event"] == "request finished" for line in lines),
            what="the API has seen that the client left",
        )

    assert [line["status"] for line in lines if line["event"] == "request finished"] == [499]
    assert keys_in(api.store) == []
    assert unfinished() == []
    assert documents_in(api.database) == []
    assert api.dispatch.sent == []


def test_a_client_that_stops_sending_is_refused_and_leaves_nothing(
    serve: Serve, store: S3ObjectStore
) -> None:
    with serve(settings={"api_upload_idle_s": 0.2}) as api, start_upload(api) as connection:
        connection.sendall(PDF[: len(PDF) // 2])
        answer = connection.recv(1_000)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert keys_in(store) == []
    assert documents_in(api.database) == []


def test_more_uploads_than_fit_are_refused_until_one_is_over(serve: Serve) -> None:
    with serve(settings={"api_max_uploads": 1}) as api:
        with start_upload(api):
            refused = submit(api.client)
        wait_until(lambda: submit(api.client).status_code == 202, what="the place is free")

    assert refused.json()["code"] == "too_many_uploads"
    assert int(refused.headers["Retry-After"]) > 0


def test_a_document_is_accepted_while_the_broker_is_away(serve: Serve, database: Database) -> None:
    def refuse(document_id: UUID, *, priority: Priority) -> None:
        raise DispatchError(f"{document_id} {priority}")

    with serve(send_split=refuse) as api:
        response = submit(api.client)

    (row,) = documents_in(database)
    assert response.status_code == 202
    assert row.dispatch_after is not None  # the sweep looks at it then


def test_storage_that_is_away_is_a_503_and_leaves_nothing(
    serve: Serve, s3_bucket: S3Bucket
) -> None:
    nowhere = open_store(s3_bucket, endpoint_url=f"http://127.0.0.1:{free_port()}")

    with serve(store=nowhere) as api:
        response = submit(api.client)

    assert (response.status_code, response.json()["code"]) == (503, "storage_unavailable")
    assert int(response.headers["Retry-After"]) > 0
    assert documents_in(api.database) == []


def test_storage_that_fails_in_mid_upload_leaves_nothing(
    serve: Serve, store: S3ObjectStore, s3_bucket: S3Bucket
) -> None:
    with serve(store=StoreThatFailsAt(store, len(PDF) - 1)) as api:
        response = submit(api.client)

    uploads = s3_client(s3_bucket).list_multipart_uploads(Bucket=s3_bucket.name)
    assert response.status_code == 503
    assert keys_in(store) == []
    assert uploads.get("Uploads", []) == []
    assert documents_in(api.database) == []


def test_a_database_that_leaves_before_the_row_leaves_no_object(
    serve: Serve, database: Database
) -> None:
    leaving = DatabaseThatLeaves(database.transaction)
    store = StoreWithACallback(leaving.leave)

    with serve(store=store, transaction=leaving) as api:
        response = submit(api.client)

    assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
    assert keys_in(store) == []
    assert documents_in(database) == []


def test_a_row_whose_commit_was_lost_on_the_way_back_is_accepted(
    serve: Serve, store: S3ObjectStore, database: Database
) -> None:
    losing = DatabaseThatLosesACommit(database.transaction, is_committed=True)

    with serve(transaction=losing) as api:
        response = submit(api.client)

    document_id = UUID(response.json()["id"])
    assert response.status_code == 202
    assert [row.id for row in documents_in(database)] == [document_id]
    assert keys_in(store) == [keys.source_key(document_id)]
    assert api.dispatch.sent == [document_id]


def test_the_bytes_of_a_row_that_may_stand_are_kept(
    serve: Serve, store: S3ObjectStore, database: Database
) -> None:
    losing = DatabaseThatLosesACommit(database.transaction, is_committed=False)

    with serve(transaction=losing) as api:
        response = submit(api.client)

    assert response.status_code == 503
    assert len(keys_in(store)) == 1
    assert api.dispatch.sent == []


def test_a_batch_that_is_cancelled_while_a_document_arrives_leaves_nothing_of_it(
    serve: Serve, database: Database
) -> None:
    with database.transaction() as session:
        batch_id = add_batch(session, tenant="archive")

    def cancel() -> None:
        with database.transaction() as session:
            cancelling.start_batch(session, batch_id, tenant="archive")

    store = StoreWithACallback(then=cancel)

    with serve(store=store) as api:
        response = api.client.post(
            "/v1/documents", files={"file": ("a.pdf", PDF)}, data={"batch_id": str(batch_id)}
        )

    assert (response.status_code, response.json()["code"]) == (409, "batch_closed")
    assert keys_in(store) == []
    assert documents_in(database) == []


@pytest.mark.parametrize("takes_effect", [False, True])
def test_an_answer_is_true_when_the_line_to_the_database_is_cut_in_the_commit(
    serve: Serve,
    store: S3ObjectStore,
    database: Database,
    database_url: str,
    *,
    takes_effect: bool,
) -> None:
    with commit_proxy(database_url) as line:
        cut_off = Database(line.url)
        with serve(transaction=cut_off.transaction) as api:
            line.lose_commit(of="INSERT INTO documents", takes_effect=takes_effect)
            response = submit(api.client)
        cut_off.dispose()

    assert line.lost == 1
    assert response.status_code == (202 if takes_effect else 503)
    assert len(documents_in(database)) == int(takes_effect)
    assert len(keys_in(store)) == 1
    assert len(api.dispatch.sent) == int(takes_effect)
