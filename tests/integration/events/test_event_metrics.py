"""What ``pagefleet s3-events`` shows of the events that it took in."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.api_server import free_port
from tests.support.aws_servers import AwsServer, running_aws_server
from tests.support.event_consumer import consuming, environment_of
from tests.support.fleet import wait_for
from tests.support.scraped import Scraped, scrape

LIMIT_S = 120


@pytest.fixture
def moto() -> Iterator[AwsServer]:
    with running_aws_server("moto") as server:
        yield server


@pytest.mark.timeout(400)
def test_events_are_counted_by_what_became_of_them(
    moto: AwsServer, database_url: str, tmp_path: Path
) -> None:
    for bucket in ("pagefleet", "scans"):
        moto.make_bucket(bucket)
    queue_url, _ = moto.queue("events")
    for body in ("no event at all", event_of("in/gone.pdf"), event_of("out/other.pdf")):
        moto.client("sqs").send_message(QueueUrl=queue_url, MessageBody=body)
    port = free_port()
    environment = environment_of(
        moto.bucket("pagefleet"),
        moto,
        database_url=database_url,
        queue_url=queue_url,
        home=tmp_path,
    )

    def shown() -> Scraped | None:
        try:
            scraped = scrape(f"http://127.0.0.1:{port}")
        except httpx.TransportError:
            return None
        return scraped if scraped.find("pagefleet_storage_events_total") == 3 else None

    with consuming({**environment, "PAGEFLEET_METRICS_PORT": str(port)}, tmp_path / "log"):
        scraped = wait_for("three events", shown, timeout_s=LIMIT_S)

    counted = {
        outcome: scraped.find("pagefleet_storage_events_total", outcome=outcome)
        for outcome in ("unreadable", "gone", "unwatched")
    }
    assert counted == {"unreadable": 1, "gone": 1, "unwatched": 1}
    assert scraped.value("pagefleet_build_info", program="s3-events") == 1


def event_of(key: str) -> str:
    return (
        '{"Records": [{"eventVersion": "2.1", "eventSource": "aws:s3",'
        ' "eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "scans"},'
        f' "object": {{"key": "{key}", "size": 8, "eTag": "0123456789abcdef"}}}}}}]}}'
    )
