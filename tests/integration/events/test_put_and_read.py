"""Put an object into a watched bucket, and get its result, with no other call."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.samples import Sample
from cli.stack.state import read_stack
from tests.support.api_server import client_of
from tests.support.aws_servers import AwsServer
from tests.support.commands import run_pagefleet
from tests.support.fleet import Fleet, lent_fleet, wait_for
from tests.support.services import S3Bucket

KEY = "in/Größe + 5%.png"
TOKEN = "a token of 16 characters or more"  # noqa: S105 - of no server but this test's
LIMIT_S = 200
WORKERS = {
    "assembler": ("worker", "--queues", "split,assemble", "--slots", "1"),
    "recognizer": ("worker", "--queues", "recognize", "--slots", "1"),
    "reconciler": ("reconcile",),
}


@contextmanager
def fleet_of(
    bucket: S3Bucket,
    scans: str,
    *,
    database_url: str,
    redis_url: str,
    home: Path,
    **settings: str,
) -> Iterator[Fleet]:
    """Lend workers and an API that watch a bucket."""
    with lent_fleet(
        database_url=database_url, redis_url=redis_url, bucket=bucket, home=home
    ) as fleet:
        watched = [
            {"bucket": scans, "prefix": "in/", "tenant": "acceptance", "priority": "interactive"}
        ]
        fleet.environment.update({
            "PAGEFLEET_S3_EVENTS_WATCHED": json.dumps(watched),
            **settings,
        })
        for name, arguments in WORKERS.items():
            fleet.start(name, *arguments)
        fleet.start("api", "api")
        fleet.wait_for_api()
        yield fleet


def result_of_the_only_document(client: httpx.Client) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        documents = client.get("/v1/documents").json()["documents"]
        return next((each for each in documents if each["links"]["result"]), None)

    view = wait_for("a result", look, timeout_s=LIMIT_S)
    assert len(client.get("/v1/documents").json()["documents"]) == 1
    result: dict[str, Any] = client.get(view["links"]["result"]).json()
    return result


# One of the two servers: how they differ is of no concern behind the event, and a fleet is dear.
@pytest.mark.parametrize("aws_server", ["ministack"], indirect=True)
@pytest.mark.timeout(600)
def test_an_object_in_a_queue_of_amazon_is_read(
    aws: AwsServer, database_url: str, redis_url: str, samples: dict[str, Sample], tmp_path: Path
) -> None:
    sample = samples["label.png"]
    own = aws.bucket("pagefleet")
    aws.make_bucket(own.name)
    aws.make_bucket("scans")
    queue_url, queue_arn = aws.queue("events")
    aws.notify("scans", queue_arn, prefix="in/")
    with fleet_of(
        own,
        "scans",
        database_url=database_url,
        redis_url=redis_url,
        home=tmp_path,
        PAGEFLEET_S3_EVENTS_QUEUE_URL=queue_url,
        PAGEFLEET_S3_EVENTS_QUEUE_ENDPOINT_URL=aws.url,
    ) as fleet:
        fleet.start("s3-events", "s3-events")

        aws.client("s3").put_object(Bucket="scans", Key=KEY, Body=sample.path.read_bytes())

        with fleet.client as client:
            result = result_of_the_only_document(client)
        assert result["source"]["filename"] == "Größe + 5%.png"
        assert result["source"]["media_type"] == "image/png"
        assert re.search(r"\w{4}", result["full_text"])
        assert fleet.terminate("s3-events", grace_s=30) == 0


@pytest.mark.timeout(600)
def test_an_object_in_the_embedded_stack_is_read(
    stack_home: Path, samples: dict[str, Sample]
) -> None:
    watched = [{"bucket": "scans", "prefix": "in/", "tenant": "default"}]
    started = run_pagefleet(
        "up",
        "--detach",
        timeout_s=300,
        PAGEFLEET_HOME=str(stack_home),
        PAGEFLEET_S3_EVENTS_TOKEN=TOKEN,
        PAGEFLEET_S3_EVENTS_WATCHED=json.dumps(watched),
    )
    assert started.returncode == 0, started.stderr
    stack = read_stack(stack_home)
    assert stack is not None
    store = stack.make_store().other_bucket("scans")
    store.ensure_bucket()

    store.put(KEY, samples["label.png"].path.read_bytes(), media_type="image/png")

    with client_of(stack.api_url, stack.api_key) as client:
        result = result_of_the_only_document(client)
    store.close()
    assert result["source"]["filename"] == "Größe + 5%.png"
    assert re.search(r"\w{4}", result["full_text"])
