"""Servers that are stopped: their connections stand, and nothing answers on them."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from urllib.parse import urlsplit

import httpx
import pytest

from cli.stack.postgres import Postgres
from cli.stack.valkey import Valkey
from db.engine import CONNECT_TIMEOUT_S, Database
from db.migrate import migrate
from tests.support import services
from tests.support.api_server import client_of, documents_in, make_key, served_in_process
from tests.support.processes import stopped
from tests.support.services import S3Bucket

PDF = b"%PDF-1.7\n" + bytes(2_000)
SLACK_S = 3  # of a machine that does other things


@pytest.fixture
def own_database(own_postgres: Postgres) -> Iterator[Database]:
    """A database whose server the test may stop."""
    url = services.make_database(own_postgres, "hanging")
    migrate(url)
    database = Database(url)
    yield database
    database.dispose()


def submit(client: httpx.Client) -> httpx.Response:
    return client.post("/v1/documents", files={"file": ("a.pdf", PDF)})


def test_requests_end_in_time_while_the_database_is_stopped(
    own_database: Database, own_postgres: Postgres, redis_url: str, s3_bucket: S3Bucket
) -> None:
    statement_s, answer_s = 1.0, 12.0
    limits = {
        "PAGEFLEET_API_DATABASE_TIMEOUT_S": str(statement_s),
        "PAGEFLEET_API_ANSWER_TIMEOUT_S": str(answer_s),
    }

    def ask(client: httpx.Client) -> tuple[int, str, float]:
        began = monotonic()
        response = client.get("/v1/documents")
        return response.status_code, response.json()["code"], monotonic() - began

    with (
        served_in_process(
            database_url=own_postgres.url("hanging"),
            redis_url=redis_url,
            bucket=s3_bucket,
            **limits,
        ) as (url, _),
        client_of(url, make_key(own_database, "archive")) as client,
    ):
        assert submit(client).status_code == 202
        with stopped(own_postgres.pid):
            # More than there are threads, so that some wait for a thread and not for the database.
            with ThreadPoolExecutor(20) as threads:
                asked = list(threads.map(lambda _: ask(client), range(20)))
            began = monotonic()
            uploaded = submit(client)
            upload_s = monotonic() - began
            alive = client.get("/livez")
        back = submit(client)

    one_wait_s = statement_s + 1 + CONNECT_TIMEOUT_S
    assert {status for status, _, _ in asked} == {503}
    assert {code for _, code, _ in asked} <= {"database_unavailable", "busy"}
    assert max(seconds for _, _, seconds in asked) < answer_s + one_wait_s + SLACK_S
    assert (uploaded.status_code, uploaded.json()["code"]) == (503, "database_unavailable")
    assert int(uploaded.headers["Retry-After"]) > 0
    assert upload_s < one_wait_s + SLACK_S
    assert alive.status_code == 200
    assert back.status_code == 202


def test_an_upload_is_accepted_in_time_while_the_broker_is_stopped(
    database: Database, database_url: str, own_valkey: Valkey, s3_bucket: S3Bucket
) -> None:
    with (
        served_in_process(
            database_url=database_url,
            redis_url=own_valkey.url(),
            bucket=s3_bucket,
            PAGEFLEET_API_BROKER_TIMEOUT_S="1",
        ) as (url, _),
        client_of(url, make_key(database, "archive")) as client,
    ):
        assert submit(client).status_code == 202  # the connection stands
        with stopped(own_valkey.pid):
            seconds = []
            for _ in range(2):
                began = monotonic()
                accepted = submit(client)
                seconds.append(monotonic() - began)
                assert accepted.status_code == 202

    assert max(seconds) < 1 + SLACK_S, seconds
    assert all(row.dispatch_after is not None for row in documents_in(database))


@pytest.mark.parametrize(
    "sent", [b"", b"GET /livez HTTP/1.1\r\nHost: x\r\n", b"G"], ids=["nothing", "half", "a letter"]
)
def test_a_head_that_does_not_come_is_not_waited_for(quick_url: str, sent: bytes) -> None:
    with connect(quick_url) as connection:
        connection.sendall(sent)

        assert connection.recv(100) == b""  # closed, and well before the test's own limit


def test_a_head_that_drips_is_not_waited_for(quick_url: str) -> None:
    with connect(quick_url) as connection:
        connection.settimeout(0.1)
        began = monotonic()
        with pytest.raises(ConnectionError):
            drip(connection, for_s=10)

    assert monotonic() - began < 1 + SLACK_S


def test_the_head_of_a_further_request_has_to_come_in_time_too(quick_url: str) -> None:
    with connect(quick_url) as connection:
        ask_whether_it_lives(connection)
        connection.sendall(b"GET /livez HT")

        assert connection.recv(100) == b""


def test_an_idle_connection_is_kept_for_a_further_request(quick_url: str) -> None:
    with connect(quick_url) as connection:
        for pause_s in (1.5, 0.1):
            ask_whether_it_lives(connection)
            connection.settimeout(pause_s)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            connection.settimeout(20)


@pytest.fixture(scope="module")
def quick_url() -> Iterator[str]:
    """An API that gives a head one second."""
    nowhere = S3Bucket(
        name="none",
        endpoint_url="http://127.0.0.1:1",
        access_key_id="a",
        secret_access_key="b",  # noqa: S106 - of nothing
        region="us-east-1",
    )
    with served_in_process(
        database_url="postgresql://nobody@127.0.0.1:1/none",
        redis_url="redis://127.0.0.1:1",
        bucket=nowhere,
        PAGEFLEET_API_HEAD_TIMEOUT_S="1",
    ) as (url, _):
        yield url


def connect(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=20)


def ask_whether_it_lives(connection: socket.socket) -> None:
    connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(1_000)
    assert answer.startswith(b"HTTP/1.1 200 ")


def drip(connection: socket.socket, *, for_s: float) -> None:
    """Send a letter every tenth of a second.

    Raises:
        ConnectionError: the other side has closed.
    """
    began = monotonic()
    while monotonic() - began < for_s:
        connection.sendall(b"a")
        try:
            if connection.recv(100) == b"":
                raise ConnectionError("closed")
        except TimeoutError:
            continue
