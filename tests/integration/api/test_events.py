"""The stream of a document's events as a client sees it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import httpx
import pytest

from api import event_stream
from db import cancelling, deleting, retrying
from db.engine import Database
from db.models import Document
from tests.support.api_server import (
    RunningApi,
    Serve,
    client_of,
    make_key,
    served_in_process,
    wait_until,
)
from tests.support.event_streams import open_stream, read_stream
from tests.support.rows import TENANT, add_document, claim_chunk, publish_chunk
from tests.support.rows import add_recognizing_document as add_recognizing
from tests.support.services import S3Bucket


def add(database: Database) -> UUID:
    with database.transaction() as session:
        return add_document(session)


def cancel(database: Database, document_id: UUID) -> None:
    with database.transaction() as session:
        cancelling.cancel(session, document_id, tenant=TENANT)


def test_what_happened_comes_first_and_what_happens_follows(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id, planned = add_recognizing(session, page_count=3)

    with open_stream(api.client, document_id) as (response, found):
        first = [next(found) for _ in range(2)]
        with api.database.transaction() as session:
            publish_chunk(session, claim_chunk(session, planned[0].id))
        cancel(api.database, document_id)
        rest = list(found)

    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.headers["Cache-Control"] == "no-store"
    assert [(event.number, event.type) for event in first] == [(1, "accepted"), (2, "recognizing")]
    assert rest[-1].type == "cancelled"
    assert rest[-1].data["error"]["code"] == "cancelled"
    assert rest[-1].data["progress"] == {"pages": 3, "ok": 2, "failed": 0, "skipped": 0, "left": 1}
    assert rest[-1].data["document_id"] == str(document_id)


def test_a_reader_goes_on_where_it_stopped(api: RunningApi) -> None:
    document_id = add(api.database)
    cancel(api.database, document_id)
    with api.database.transaction() as session:
        retrying.retry(session, document_id, tenant=TENANT)
    cancel(api.database, document_id)

    whole = read_stream(api.client, document_id)
    rest = read_stream(api.client, document_id, after=2)

    assert [event.number for event in whole] == [1, 2, 3, 4]
    assert rest == whole[2:]


def test_a_reader_that_saw_the_end_is_told_to_stop(api: RunningApi) -> None:
    document_id = add(api.database)
    cancel(api.database, document_id)

    answer = api.client.get(f"/v1/documents/{document_id}/events", headers={"Last-Event-ID": "2"})

    assert (answer.status_code, answer.content) == (204, b"")


def test_more_events_than_are_fetched_at_once_all_come(api: RunningApi) -> None:
    document_id = add(api.database)
    for _ in range(70):
        with api.database.transaction() as session:
            cancelling.cancel(session, document_id, tenant=TENANT)
            retrying.retry(session, document_id, tenant=TENANT)
    cancel(api.database, document_id)

    found = read_stream(api.client, document_id)

    assert [event.number for event in found] == list(range(1, 143))


def test_deleting_ends_the_stream_and_later_ones_find_nothing(api: RunningApi) -> None:
    document_id = add(api.database)

    with open_stream(api.client, document_id) as (_, found):
        assert next(found).type == "accepted"
        with api.database.transaction() as session:
            deleting.mark(session, document_id, tenant=TENANT, writers_s=60)
        last = [event.type for event in found]

    assert last == ["deleted"]
    assert api.client.get(f"/v1/documents/{document_id}/events").status_code == 404


def test_a_document_that_ended_before_events_were_kept_ends_its_stream(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id = add_document(session, state="failed", error_code="damaged")
        session.connection().exec_driver_sql("DELETE FROM document_events")

    assert [event.type for event in read_stream(api.client, document_id)] == ["accepted"]


@pytest.mark.parametrize("number", ["-1", "x", "2147483648"])
def test_a_number_that_no_event_can_have_is_refused(api: RunningApi, number: str) -> None:
    document_id = add(api.database)

    answer = api.client.get(
        f"/v1/documents/{document_id}/events", headers={"Last-Event-ID": number}
    )

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_another_tenants_events_are_not_found(api: RunningApi, stranger: httpx.Client) -> None:
    document_id = add(api.database)

    for unknown in (document_id, uuid4()):
        assert stranger.get(f"/v1/documents/{unknown}/events").status_code == 404


def test_a_stream_is_kept_open_by_pings(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "PING_S", 0.2)
    # Longer than a request has for its answer: an answer that has begun may take longer.
    with serve(settings={"api_answer_timeout_s": 0.5}) as api:
        document_id = add(api.database)
        with api.client.stream("GET", f"/v1/documents/{document_id}/events") as response:
            lines = response.iter_lines()
            pings = [next(line for line in lines if line == ": ping") for _ in range(5)]

    assert len(pings) == 5


def test_a_stream_ends_after_its_longest_time_and_goes_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "LONGEST_S", 0.5)
    with serve() as api:
        document_id = add(api.database)

        first = read_stream(api.client, document_id)
        cancel(api.database, document_id)
        rest = read_stream(api.client, document_id, after=first[-1].number)

    assert [event.type for event in (*first, *rest)] == ["accepted", "cancelled"]


def test_a_key_has_so_many_streams_and_gets_a_place_back_when_a_client_goes(
    serve: Serve,
) -> None:
    with serve(settings={"api_max_streams_per_key": 2}) as api:
        document_id = add(api.database)
        address = f"/v1/documents/{document_id}/events"
        with (
            client_of(api.url, make_key(api.database, TENANT)) as other_key,
            open_stream(api.client, document_id),
            open_stream(api.client, document_id),
        ):
            refused = api.client.get(address)
            with open_stream(other_key, document_id) as (response, _):
                assert response.status_code == 200

        def has_a_place() -> bool:
            with open_stream(api.client, document_id) as (response, _):
                return response.status_code == 200

        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        assert int(refused.headers["Retry-After"]) > 0
        wait_until(has_a_place, what="a place after its client went")


def test_an_idle_stream_holds_no_connection(serve: Serve) -> None:
    with serve() as api:
        document_id = add(api.database)
        with (
            small_database(api) as database,
            serve(transaction=database.transaction) as small,
            open_stream(small.client, document_id) as (_, first),
            open_stream(small.client, document_id) as (_, second),
        ):
            next(first), next(second)
            # The only connection is free for a third reader, and for what all three wait for.
            assert small.client.get(f"/v1/documents/{document_id}").status_code == 200
            cancel(api.database, document_id)
            ends = [[event.type for event in found] for found in (first, second)]

    assert ends == [["cancelled"], ["cancelled"]]


@contextmanager
def small_database(api: RunningApi) -> Iterator[Database]:
    url = api.database._engine.url.render_as_string(hide_password=False)
    database = Database(url, pool_size=1, max_connections=1)
    yield database
    database.dispose()


def test_streams_do_not_keep_a_process_from_ending(
    database: Database, database_url: str, redis_url: str, s3_bucket: S3Bucket
) -> None:
    document_id = add(database)
    with (
        served_in_process(
            database_url=database_url,
            redis_url=redis_url,
            bucket=s3_bucket,
            PAGEFLEET_API_SHUTDOWN_S="600",
        ) as (url, process),
        client_of(url, make_key(database, TENANT)) as client,
        open_stream(client, document_id) as (_, found),
    ):
        next(found)
        process.send_signal(signal.SIGTERM)
        rest = list(found)
        code = process.wait(60)

    assert (rest, code) == ([], 0)


def test_the_split_of_a_document_of_one_page_is_not_told(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id, _ = add_recognizing(session, page_count=1)
        assert session.get_one(Document, document_id).state == "recognizing"
    cancel(api.database, document_id)

    assert [event.type for event in read_stream(api.client, document_id)] == [
        "accepted",
        "cancelled",
    ]
