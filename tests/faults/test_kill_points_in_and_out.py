"""Processes die where objects come in, and where results go out, and it is as if none had.

Documents end as in ``test_kill_points``; an export is what it is without a fault, an object becomes
one document, and an endpoint is told once or, where nobody can know whether it was, twice under the
same id.
"""

import json
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import httpx
import pymupdf
import pytest

from cli.stack.seaweedfs import SeaweedFS
from tests.support.aws_servers import AwsServer, running_aws_server
from tests.support.event_consumer import is_empty
from tests.support.fault_stage import END_TIMEOUT_S, REACH_TIMEOUT_S, FaultStage
from tests.support.fleet import TENANT, wait_for
from tests.support.services import S3Bucket, s3_client
from tests.support.webhook_receiver import WebhookReceiver, receiving

SCANS = f"scans-{uuid4().hex}"
TOKEN = "a token of 16 characters or more"  # noqa: S105 - of no server but this test's
STAGE_SETTINGS = {
    "PAGEFLEET_WEBHOOK_ALLOW_LOOPBACK": "true",
    "PAGEFLEET_WEBHOOK_INTERVAL_S": "0.2",
    "PAGEFLEET_S3_EVENTS_TOKEN": TOKEN,
    "PAGEFLEET_S3_EVENTS_WATCHED": json.dumps([
        {"bucket": SCANS, "prefix": "in/", "tenant": TENANT, "priority": "interactive"}
    ]),
}
STAGE_PROCESSES = {
    "exporter-a": ("worker", "--queues", "export", "--slots", "1", "--name", "exporter-a@%h"),
    "exporter-b": ("worker", "--queues", "export", "--slots", "1", "--name", "exporter-b@%h"),
    "teller-a": ("webhooks",),
    "teller-b": ("webhooks",),
}
EXPORTS = [
    ("export_before_put", "child", "csv"),
    ("export_before_put", "child", "pdf"),
    ("export_after_text_put", "child", "csv"),
    ("export_after_pdf_put", "child", "pdf"),
    ("export_before_commit", "child", "pdf"),
    ("export_after_commit", "child", "csv"),
    ("export_before_commit", "group", "csv"),
    ("export_before_ack", "group", "pdf"),
]
# How often an endpoint is told.
WEBHOOKS = [
    ("webhook_before_post", 1),
    ("webhook_after_post", 2),
    ("webhook_before_commit", 2),
    ("webhook_after_commit", 1),
]
# What the second time is answered with.
EVENTS = [("event_before_commit", "accepted"), ("event_after_commit", "known")]

pytestmark = pytest.mark.timeout(300)


def export(stage: FaultStage, document_id: UUID, name: str) -> Sequence[str]:
    """Ask for another form of a result until it is there; return what it says."""

    def look() -> httpx.Response | None:
        with stage.fleet.client as client:
            answer = client.get(f"/v1/documents/{document_id}/result", params={"format": name})
        assert answer.status_code in {200, 202}, answer.text
        return answer if answer.status_code == httpx.codes.OK else None

    body = wait_for(f"the result as {name}", look, timeout_s=END_TIMEOUT_S).content
    if name != "pdf":
        return [body.decode()]
    with pymupdf.open("pdf", body) as document:
        return [page.get_text() for page in document]


@pytest.fixture(scope="module")
def sound_exports(running_stage: FaultStage) -> Mapping[str, Sequence[str]]:
    """What exports of the stage's document are without a fault."""
    document_id = running_stage.wait_until_final(running_stage.submit())
    return {name: export(running_stage, document_id, name) for name in ("csv", "pdf")}


@pytest.mark.parametrize(("point", "action", "name"), EXPORTS)
def test_a_worker_that_dies_costs_no_export(
    stage: FaultStage,
    sound_exports: Mapping[str, Sequence[str]],
    point: str,
    action: str,
    name: str,
) -> None:
    document_id = stage.wait_until_final(stage.submit())
    stage.arm(point, action)

    found = export(stage, document_id, name)
    stage.reached(point)

    assert found == sound_exports[name]
    wait_for(
        "the end of the export",
        lambda: stage.fleet.rows(
            "SELECT 1 FROM exports WHERE state = 'succeeded' AND dispatch_after IS NULL"
            " AND lease_expires_at IS NULL AND worker IS NULL"
        ),
        timeout_s=END_TIMEOUT_S,
    )
    assert stage.value("SELECT count(*) FROM exports") == 1
    stage.check(document_id)


@pytest.fixture
def endpoint(stage: FaultStage) -> Iterator[WebhookReceiver]:
    """An address that is told how documents end."""
    with receiving() as receiver, stage.fleet.client as client:
        made = client.post("/v1/webhooks", json={"url": receiver.url})
        assert made.status_code == httpx.codes.CREATED, made.text
        yield receiver
        client.delete(made.json()["links"]["self"]).raise_for_status()


def end_leases(stage: FaultStage) -> None:
    """Let the time pass for which a dead sender owns its delivery: a minute and a half at least."""
    stage.fleet.rows(
        "UPDATE webhook_deliveries SET lease_expires_at = now(), dispatch_after = now()"
        " WHERE lease_expires_at IS NOT NULL RETURNING id"
    )


@pytest.mark.parametrize(("point", "times"), WEBHOOKS)
def test_a_sender_that_dies_tells_the_same_again_where_nobody_knows_whether_it_was_told(
    stage: FaultStage, endpoint: WebhookReceiver, point: str, times: int
) -> None:
    stage.arm(point, "child")

    document_id = stage.submit()
    stage.reached(point)
    end_leases(stage)

    wait_for(
        "the end of the delivery",
        lambda: stage.fleet.rows(
            "SELECT 1 FROM webhook_deliveries WHERE state = 'delivered'"
            " AND dispatch_after IS NULL AND lease_expires_at IS NULL"
        ),
        timeout_s=END_TIMEOUT_S,
    )
    stage.check(document_id)
    assert stage.value("SELECT count(*) FROM webhook_deliveries") == 1
    assert len(endpoint.received) == times
    assert len({(each.message_id, each.body) for each in endpoint.received}) == 1
    assert endpoint.received[0].content["data"]["document_id"] == str(document_id)


@pytest.fixture(scope="module")
def scans(object_storage: SeaweedFS) -> Iterator[S3Bucket]:
    """The bucket that is watched."""
    bucket = S3Bucket(
        name=SCANS,
        endpoint_url=object_storage.endpoint_url,
        access_key_id=object_storage.access_key_id,
        secret_access_key=object_storage.secret_access_key,
        region=object_storage.region,
    )
    client = s3_client(bucket)
    client.create_bucket(Bucket=bucket.name)
    yield bucket
    client.delete_bucket(Bucket=bucket.name)
    client.close()


def put_document(stage: FaultStage, scans: S3Bucket) -> dict[str, Any]:
    """Put the stage's document into the watched bucket, under a new key; return its event."""
    key = f"in/{uuid4().hex}/{stage.document.name}"
    client = s3_client(scans)
    client.put_object(Bucket=scans.name, Key=key, Body=stage.document.read_bytes())
    client.close()
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "s3": {
            "bucket": {"name": scans.name},
            "object": {"key": urllib.parse.quote_plus(key), "size": 1, "eTag": "1"},
        },
    }


def tell(stage: FaultStage, event: Mapping[str, Any]) -> httpx.Response:
    """Tell the API of an object, again as long as it dies of it, as a store does."""

    def look() -> httpx.Response | None:
        with suppress(httpx.TransportError):
            return httpx.post(
                f"{stage.fleet.api_url}/v1/events/s3",
                json={"Records": [event]},
                headers={"Authorization": f"Bearer {TOKEN}"},
                timeout=30,
                trust_env=False,
            )
        if not stage.fleet.is_running("api"):
            stage.start("api")
        return None

    return wait_for("an answer to an event", look, timeout_s=REACH_TIMEOUT_S)


@pytest.mark.parametrize(("point", "outcome"), EVENTS)
def test_an_api_that_dies_makes_one_document_of_an_event_that_is_told_again(
    stage: FaultStage, scans: S3Bucket, point: str, outcome: str
) -> None:
    event = put_document(stage, scans)
    stage.arm(point, "child")

    answer = tell(stage, event)
    stage.reached(point)

    assert answer.status_code == httpx.codes.OK
    assert {name for name, count in answer.json().items() if count} == {outcome}
    stage.check(stage.value("SELECT id FROM documents"))


@pytest.fixture(scope="module")
def queue_server() -> Iterator[AwsServer]:
    with running_aws_server("moto") as server:
        yield server


@pytest.mark.timeout(900)  # the server of queues is installed at its first use
def test_a_reader_of_a_queue_that_dies_before_it_lets_go_of_a_message_makes_one_document(
    stage: FaultStage, scans: S3Bucket, queue_server: AwsServer
) -> None:
    queue_url, _ = queue_server.queue("events")
    settings = {
        "PAGEFLEET_S3_EVENTS_QUEUE_URL": queue_url,
        "PAGEFLEET_S3_EVENTS_QUEUE_ENDPOINT_URL": queue_server.url,
        "PAGEFLEET_S3_EVENTS_VISIBILITY_S": "30",
        "PAGEFLEET_S3_EVENTS_WAIT_S": "1",
    }
    body = json.dumps({"Records": [put_document(stage, scans)]})
    queue_server.client("sqs").send_message(QueueUrl=queue_url, MessageBody=body)
    stage.arm("event_before_delete", "child")

    stage.fleet.start("listener", "s3-events", **settings)
    stage.reached("event_before_delete")
    stage.fleet.wait_for_end("listener", timeout_s=30)
    document_id = stage.value("SELECT id FROM documents")
    is_left = not is_empty(queue_server, queue_url)
    stage.fleet.start("listener", "s3-events", **settings)
    wait_for("an empty queue", lambda: is_empty(queue_server, queue_url), timeout_s=END_TIMEOUT_S)

    assert is_left
    assert stage.fleet.terminate("listener") == 0
    stage.check(document_id)
    assert stage.value("SELECT count(*) FROM documents") == 1
