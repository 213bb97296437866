"""Rates of keys: two processes of the API count together, and serve without Redis."""

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import monotonic

import httpx
import pytest

from cli.stack.valkey import Valkey
from db import api_keys
from db.engine import Database
from tests.support.api_server import client_of, free_port, served_in_process, wait_until
from tests.support.processes import stopped
from tests.support.services import S3Bucket

PDF = b"%PDF-1.7\n" + bytes(2_000)


def make_limited_key(database: Database, most: int) -> str:
    with database.transaction() as session:
        return api_keys.create(
            session, tenant="archive", name="limited", max_requests_per_minute=most
        )


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """Holds what runs."""
    with ExitStack() as stack:
        yield stack


def test_two_processes_let_a_key_make_as_many_requests_as_one(
    database: Database, database_url: str, redis_url: str, s3_bucket: S3Bucket, running: ExitStack
) -> None:
    key = make_limited_key(database, 30)
    clients = []
    for _ in range(2):
        url, _ = running.enter_context(
            served_in_process(database_url=database_url, redis_url=redis_url, bucket=s3_bucket)
        )
        clients.append(running.enter_context(client_of(url, key)))

    def ask(number: int) -> httpx.Response:
        return clients[number % 2].get("/v1/documents")

    began = monotonic()
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(ask, range(100)))
    filled = (monotonic() - began) / 2

    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) == {200, 429}
    assert 30 <= statuses[200] <= 30 + filled + 1
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json()["code"] == "too_many_requests"
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert int(refused.headers["Retry-After"]) in {1, 2}
    assert all(
        answer.headers["RateLimit-Policy"] == '"requests";q=30;w=60'
        and answer.headers["RateLimit"].startswith('"requests";r=')
        for answer in answers
    )

    threading.Event().wait(int(refused.headers["Retry-After"]))

    assert clients[0].get("/v1/documents").status_code == 200


def test_a_rate_counts_everything_that_a_key_asks_for(
    database: Database, database_url: str, redis_url: str, s3_bucket: S3Bucket
) -> None:
    with (
        served_in_process(database_url=database_url, redis_url=redis_url, bucket=s3_bucket) as (
            url,
            _,
        ),
        client_of(url, make_limited_key(database, 4)) as client,
        client_of(url, None) as nobody,
    ):
        sent = client.post("/v1/documents", files={"file": ("a.pdf", PDF)})
        answers = [
            sent,
            client.get("/v1/capacity"),
            client.get("/v1/documents/no-id"),
            client.get(f"{sent.headers['Location']}/result"),
        ]
        refused = client.post("/v1/documents", files={"file": ("b.pdf", PDF)})
        alive = nobody.get("/livez")

    assert [answer.status_code for answer in answers] == [202, 200, 422, 409]
    assert [answer.headers["RateLimit"].split(";")[1] for answer in answers] == [
        "r=3",
        "r=2",
        "r=1",
        "r=0",
    ]
    assert refused.status_code == 429
    assert "RateLimit" not in alive.headers


def test_a_key_is_served_while_redis_is_away_and_that_is_said_once(
    database: Database, database_url: str, s3_bucket: S3Bucket
) -> None:
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    with served_in_process(database_url=database_url, redis_url=nowhere, bucket=s3_bucket) as (
        url,
        process,
    ):
        with client_of(url, make_limited_key(database, 2)) as client:
            answers = [client.get("/v1/documents") for _ in range(20)]
            sent = client.post("/v1/documents", files={"file": ("a.pdf", PDF)})
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)

    events = [json.loads(line)["event"] for line in output.splitlines()]
    assert {answer.status_code for answer in answers} == {200}
    assert sent.status_code == 202
    assert "RateLimit" not in sent.headers
    assert events.count("requests of keys not counted, the broker is not reachable") == 1


def test_a_redis_that_says_nothing_holds_up_one_request_and_is_asked_again(
    database: Database, database_url: str, own_valkey: Valkey, s3_bucket: S3Bucket
) -> None:
    with (
        served_in_process(
            database_url=database_url,
            redis_url=own_valkey.url(),
            bucket=s3_bucket,
            PAGEFLEET_API_BROKER_TIMEOUT_S="1",
        ) as (url, _),
        client_of(url, make_limited_key(database, 600)) as client,
    ):
        counted = client.get("/v1/documents")
        with stopped(own_valkey.pid):
            began = monotonic()
            uncounted = [client.get("/v1/documents") for _ in range(10)]
            seconds = monotonic() - began
        wait_until(
            lambda: "RateLimit" in client.get("/v1/documents").headers, what="a request is counted"
        )
        back = client.get("/v1/documents")

    assert "RateLimit" in counted.headers
    assert [answer.status_code for answer in uncounted] == [200] * 10
    assert all("RateLimit" not in answer.headers for answer in uncounted)
    assert seconds < 20
    assert back.status_code == 200
