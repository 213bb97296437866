"""Servers that are away cost no event, and no delivery that a queue would count."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.stack.postgres import Postgres
from db.engine import Database
from db.migrate import migrate
from tests.support.api_server import documents_in, free_port
from tests.support.aws_servers import AwsServer, running_aws_server
from tests.support.event_consumer import consuming, count_documents, environment_of, is_empty
from tests.support.fleet import wait_for

LIMIT_S = 120


@pytest.fixture
def ministack() -> Iterator[AwsServer]:
    with running_aws_server("ministack") as server:
        yield server


def set_up(aws: AwsServer) -> str:
    """Make buckets and queue; return the queue's address. What fails twice is set aside."""
    aws.make_bucket("pagefleet")
    aws.make_bucket("scans")
    _, failed_arn = aws.queue("failed")
    url, arn = aws.queue("events")
    redrive = {"deadLetterTargetArn": failed_arn, "maxReceiveCount": "2"}
    aws.client("sqs").set_queue_attributes(
        QueueUrl=url, Attributes={"RedrivePolicy": json.dumps(redrive)}
    )
    aws.notify("scans", arn, prefix="in/")
    return url


def put(aws: AwsServer, *names: str) -> None:
    client = aws.client("s3")
    for name in names:
        client.put_object(Bucket="scans", Key=f"in/{name}", Body=b"%PDF-1.7")


@pytest.mark.timeout(400)
def test_a_database_that_is_away_leaves_events_in_the_queue(
    ministack: AwsServer, own_postgres: Postgres, tmp_path: Path
) -> None:
    url = own_postgres.url()
    migrate(url)
    queue_url = set_up(ministack)
    environment = environment_of(
        ministack.bucket("pagefleet"),
        ministack,
        database_url=url,
        queue_url=queue_url,
        home=tmp_path,
    )
    log = tmp_path / "s3-events.log"
    database = Database(url)
    with consuming(environment, log) as process:
        put(ministack, "before")
        wait_for("the first", lambda: count_documents(database) == 1, timeout_s=LIMIT_S)
        own_postgres.kill()
        put(ministack, "meanwhile")
        wait_for(
            "three rounds without a database",
            lambda: log.read_text().count("events left in the queue") >= 3,
            timeout_s=LIMIT_S,
        )
        own_postgres.restart()
        wait_for("the second", lambda: _has(database, 2), timeout_s=LIMIT_S)
        wait_for("an empty queue", lambda: is_empty(ministack, queue_url), timeout_s=LIMIT_S)
        process.terminate()
        status = process.wait(30)

    keys = [row.source["key"] for row in documents_in(database)]
    database.dispose()
    assert (status, keys) == (0, ["in/before", "in/meanwhile"])


@pytest.mark.timeout(400)
def test_a_queue_and_a_storage_that_are_away_are_waited_for(
    database_url: str, tmp_path: Path
) -> None:
    port = free_port()
    absent = AwsServer("absent", f"http://127.0.0.1:{port}")
    environment = environment_of(
        absent.bucket("pagefleet"),
        absent,
        database_url=database_url,
        queue_url=f"{absent.url}/123456789012/events",
        home=tmp_path,
    )
    log = tmp_path / "s3-events.log"
    database = Database(database_url)
    with consuming(environment, log) as process:
        wait_for(
            "a round without servers",
            lambda: "events left in the queue" in log.read_text(),
            timeout_s=LIMIT_S,
        )
        with running_aws_server("ministack", port=port) as server:
            set_up(server)
            put(server, "a")
            wait_for("the document", lambda: count_documents(database) == 1, timeout_s=LIMIT_S)
        process.terminate()
        status = process.wait(30)

    database.dispose()
    assert status == 0, log.read_text()


def _has(database: Database, count: int) -> bool:
    try:
        return count_documents(database) == count
    except Exception:  # noqa: BLE001 - it may still be starting
        return False
