"""Admission and quotas, as clients of the API meet them."""

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import text

from db import api_keys
from db.engine import Database
from db.ids import new_id
from storage.s3 import S3ObjectStore
from tests.support.api_server import (
    RunningApi,
    Serve,
    client_of,
    documents_in,
    keys_in,
)
from tests.support.rows import add_document

PDF = b"%PDF-1.7\n" + bytes(2_000)
PNG_100_PIXELS = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (10).to_bytes(4, "big") * 2 + bytes(2_000)
EVERY_TIME = {"api_capacity_cache_s": 0}


def submit(client: httpx.Client, content: bytes = PDF, **arguments: Any) -> httpx.Response:
    return client.post("/v1/documents", files={"file": ("a.pdf", content)}, **arguments)


def fill(database: Database, *, pages: int, priority: str = "interactive") -> None:
    with database.transaction() as session:
        add_document(session, page_estimate=pages, priority=priority)


def client_with_quota(api: RunningApi, **quotas: int) -> httpx.Client:
    with api.database.transaction() as session:
        key = api_keys.create(session, tenant="archive", name="quota", **quotas)
    return client_of(api.url, key)


def test_a_full_system_refuses_and_leaves_nothing(serve: Serve, store: S3ObjectStore) -> None:
    with serve(settings={**EVERY_TIME, "api_max_open_pages_interactive": 5}) as api:
        fill(api.database, pages=5)

        refused = submit(api.client)

    assert (refused.status_code, refused.json()["code"]) == (503, "system_full")
    assert 5 <= int(refused.headers["Retry-After"]) <= 300
    assert keys_in(store) == []
    assert len(documents_in(api.database)) == 1


def test_a_full_system_refuses_before_it_takes_the_body(serve: Serve) -> None:
    limits = {"api_max_open_pages_interactive": 5, "api_max_open_pages_bulk": 5}
    with serve(settings={**EVERY_TIME, **limits}) as api:
        fill(api.database, pages=5)
        fill(api.database, pages=5, priority="bulk")
        address = urlsplit(api.url)
        head = (
            "POST /v1/documents HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: {api.client.headers['Authorization']}\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n"
        )
        with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
            connection.sendall(head.encode())
            # Head and body may come in two parts.
            answer = connection.recv(10_000)
            while b"system_full" not in answer and (part := connection.recv(10_000)):
                answer += part

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"system_full" in answer


def test_bulk_that_is_full_does_not_keep_interactive_documents_out(serve: Serve) -> None:
    with serve(settings={**EVERY_TIME, "api_max_open_pages_bulk": 5}) as api:
        fill(api.database, pages=5, priority="bulk")

        interactive = submit(api.client)
        bulk = submit(api.client, data={"priority": "bulk"})

    assert (interactive.status_code, bulk.status_code) == (202, 503)


def test_a_pixel_limit_refuses_too(serve: Serve) -> None:
    with serve(settings={**EVERY_TIME, "api_max_open_pixels_interactive": 101}) as api:
        answers = [submit(api.client, PNG_100_PIXELS).status_code for _ in range(3)]

    assert answers == [202, 202, 503]


def test_what_was_accepted_counts_before_it_is_counted_again(serve: Serve) -> None:
    settings = {"api_capacity_cache_s": 60, "api_max_open_pages_interactive": 2}
    with serve(settings=settings) as api:
        answers = [submit(api.client).status_code for _ in range(3)]

    assert answers == [202, 202, 503]


def test_a_document_that_is_sent_again_is_answered_by_a_full_system(serve: Serve) -> None:
    again = {"Idempotency-Key": "scan-1"}
    with serve(settings={**EVERY_TIME, "api_max_open_pages_interactive": 1}) as api:
        first = submit(api.client, headers=again)
        second = submit(api.client, headers=again)
        other = submit(api.client, headers={"Idempotency-Key": "scan-2"})

    assert second.json()["id"] == first.json()["id"]
    assert other.status_code == 503


def test_a_document_has_its_key_and_an_estimate(api: RunningApi) -> None:
    submit(api.client, b"%PDF-1.7" + bytes(500_000))

    (row,) = documents_in(api.database)
    assert row.page_estimate == 10
    assert row.pixel_estimate == 10 * 3_868_000
    assert row.key_id == api_keys.id_of(api.client.headers["Authorization"].split()[1])


def test_a_key_over_its_quota_is_refused_and_leaves_nothing(
    api: RunningApi, store: S3ObjectStore
) -> None:
    with client_with_quota(api, max_pages_per_day=2) as client:
        answers = [submit(client) for _ in range(3)]

    assert [each.status_code for each in answers] == [202, 202, 429]
    assert answers[2].json()["code"] == "quota_exceeded"
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 86_400
    assert len(keys_in(store)) == len(documents_in(api.database)) == 2
    assert submit(api.client).status_code == 202  # another key of the tenant


def test_open_pages_are_free_again_when_their_document_is_final(api: RunningApi) -> None:
    with client_with_quota(api, max_open_pages=1) as client:
        first = submit(client)
        refused = submit(client)
        with api.database.transaction() as session:
            session.execute(text("UPDATE documents SET state = 'succeeded'"))
        last = submit(client)

    assert [each.status_code for each in (first, refused, last)] == [202, 429, 202]
    assert 5 <= int(refused.headers["Retry-After"]) <= 300


@pytest.mark.parametrize("quota", ["max_open_pages", "max_pages_per_day"])
def test_of_uploads_at_once_one_gets_the_last_page_of_a_quota(
    api: RunningApi, store: S3ObjectStore, quota: str
) -> None:
    with client_with_quota(api, **{quota: 1}) as client, ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: submit(client).status_code, range(6)))

    assert sorted(answers) == [202, 429, 429, 429, 429, 429]
    assert len(documents_in(api.database)) == len(keys_in(store)) == 1


def test_a_document_that_is_sent_again_costs_no_quota(api: RunningApi) -> None:
    again = {"Idempotency-Key": "scan-1"}
    with client_with_quota(api, max_pages_per_day=2) as client:
        answers = [submit(client, headers=again).status_code for _ in range(3)]
        use = client.get("/v1/capacity").json()["key"]

        assert submit(client).status_code == 202
        assert submit(client, headers=again).status_code == 202  # also with the quota used up

    assert answers == [202, 202, 202]
    assert (use["pages_today"], use["documents_today"]) == (1, 1)


def test_capacity_says_what_is_open_and_how_much_room_there_is(serve: Serve) -> None:
    with serve(settings={**EVERY_TIME, "api_max_open_pages_bulk": 100}) as api:
        fill(api.database, pages=30, priority="bulk")
        with api.database.transaction() as session:
            add_document(session, state="succeeded", page_estimate=600)
            session.execute(
                text("UPDATE documents SET finished_at = now() WHERE state = 'succeeded'")
            )

        view = api.client.get("/v1/capacity").json()

    assert (view["bulk"]["pages"], view["bulk"]["room_pages"]) == (30, 70)
    assert view["bulk"]["oldest_s"] >= 0
    assert view["interactive"]["oldest_s"] is None
    assert view["interactive"]["room_pages"] == view["interactive"]["max_pages"]
    assert (view["pages_queued"], view["pages_in_flight"]) == (30, 0)
    assert view["drain"] == {"pages_per_s": 2.0, "window_s": 300.0}


def test_capacity_says_how_much_needed_no_reading(serve: Serve) -> None:
    with serve(settings=EVERY_TIME) as api:
        with api.database.transaction() as session:
            for cached_from in (None, new_id(), new_id()):
                add_document(session, state="succeeded", cached_from=cached_from)
            # Those of a document that was served whole are counted with it.
            session.execute(text("UPDATE documents SET finished_at = now(), pages_cached = 7"))

        view = api.client.get("/v1/capacity").json()

    assert view["cache"] == {
        "documents_finished": 3,
        "documents_cached": 2,
        "pages_cached": 7,
        "window_s": 300.0,
    }


def test_capacity_says_what_the_key_may_and_has(api: RunningApi) -> None:
    with client_with_quota(api, max_open_pages=10, max_pages_per_day=100) as client:
        submit(client)
        view = client.get("/v1/capacity").json()["key"]

    assert (view["max_open_pages"], view["open_pages"]) == (10, 1)
    assert (view["max_pages_per_day"], view["pages_today"]) == (100, 1)
    assert view["day_ends_at"].endswith("T00:00:00Z")


def test_capacity_needs_a_key(api: RunningApi) -> None:
    with client_of(api.url, None) as client:
        assert client.get("/v1/capacity").status_code == 401
