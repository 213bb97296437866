"""What real servers say of each kind of change, and by which way, is taken in once."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from api.consume_events import consume_until
from api.event_intake import EventIntake, make_queue, opened_intake
from api.settings import ApiSettings
from db.engine import Database
from tests.support.api_server import documents_in
from tests.support.aws_servers import AwsServer
from tests.support.event_consumer import is_empty

MIB = 2**20
QUIET_ROUNDS = 3
MOST_ROUNDS = 60


class Watching:
    """A watched bucket, and what reads the queue of its events."""

    def __init__(
        self, aws: AwsServer, queue_url: str, intake: EventIntake, database: Database
    ) -> None:
        self.aws = aws
        self.s3 = aws.client("s3")
        self.queue_url = queue_url
        self.queue_arn = ""
        self.intake = intake
        self.database = database
        self.settings: ApiSettings | None = None

    def put(self, key: str, body: bytes = b"%PDF-1.7") -> None:
        self.s3.put_object(Bucket="scans", Key=key, Body=body)

    def put_in_parts(self, key: str) -> None:
        upload = self.s3.create_multipart_upload(Bucket="scans", Key=key)["UploadId"]
        whole = {"Bucket": "scans", "Key": key, "UploadId": upload}
        part = self.s3.upload_part(**whole, PartNumber=1, Body=b"%PDF-" + b"x" * (5 * MIB))
        self.s3.complete_multipart_upload(
            **whole, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        )

    def consume(self) -> list[tuple[str, int]]:
        """Handle all that waits; return keys and sizes of the documents."""
        assert self.settings is not None
        stop = threading.Event()
        quiet = [False] * QUIET_ROUNDS

        def end_when_quiet() -> None:
            # Some are told a moment after the object is there.
            quiet.append(is_empty(self.aws, self.queue_url))
            if all(quiet[-QUIET_ROUNDS:]) or len(quiet) > MOST_ROUNDS:
                stop.set()

        queue = make_queue(self.settings, self.queue_url)
        consume_until(
            stop,
            queue=queue,
            take_in=self.intake.take_in,
            require_ready=self.intake.require_ready,
            handling_limit_s=20,
            after_round=end_when_quiet,
        )
        queue.close()
        assert is_empty(self.aws, self.queue_url)
        return sorted((row.source["key"], row.size_bytes) for row in documents_in(self.database))


@pytest.fixture
def watching(aws: AwsServer, database_url: str) -> Iterator[Watching]:
    own = aws.bucket("pagefleet")
    aws.make_bucket(own.name)
    aws.make_bucket("scans")
    queue_url, queue_arn = aws.queue("events")
    settings = ApiSettings(**_settings(own.environment(), aws, database_url))
    with capture_logs(), opened_intake(settings) as (intake, database, _):
        watching = Watching(aws, queue_url, intake, database)
        watching.queue_arn = queue_arn
        watching.settings = settings
        yield watching


def _settings(environment: dict[str, str], aws: AwsServer, database_url: str) -> dict[str, Any]:
    return {
        **{name.removeprefix("PAGEFLEET_").lower(): value for name, value in environment.items()},
        "database_url": database_url,
        "redis_url": "redis://unused",
        "s3_events_watched": '[{"bucket": "scans", "prefix": "in/", "tenant": "archive"}]',
        "s3_events_queue_endpoint_url": aws.url,
        "s3_events_wait_s": 1,
    }


def through_a_queue(watching: Watching) -> None:
    watching.aws.notify("scans", watching.queue_arn, prefix="in")


def through_a_topic(watching: Watching) -> None:
    sns = watching.aws.client("sns")
    topic_arn = sns.create_topic(Name="events")["TopicArn"]
    sns.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=watching.queue_arn)
    watching.s3.put_bucket_notification_configuration(
        Bucket="scans",
        NotificationConfiguration={
            "TopicConfigurations": [{"TopicArn": topic_arn, "Events": ["s3:ObjectCreated:*"]}]
        },
    )


def through_event_bridge(watching: Watching) -> None:
    events = watching.aws.client("events")
    pattern = {"source": ["aws.s3"], "detail-type": ["Object Created"]}
    events.put_rule(Name="scans", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="scans", Targets=[{"Id": "1", "Arn": watching.queue_arn}])
    watching.s3.put_bucket_notification_configuration(
        Bucket="scans", NotificationConfiguration={"EventBridgeConfiguration": {}}
    )


@pytest.mark.parametrize("way", [through_a_queue, through_a_topic, through_event_bridge])
def test_new_objects_are_told_by_every_way(
    watching: Watching, way: Callable[[Watching], None]
) -> None:
    way(watching)
    watching.put("in/a b+c%20ü.pdf")
    watching.put("out/b.pdf")

    assert watching.consume() == [("in/a b+c%20ü.pdf", 8)]


def test_an_object_in_parts_a_copy_and_a_folder_are_what_they_are(watching: Watching) -> None:
    through_a_queue(watching)
    watching.put_in_parts("in/parts.pdf")
    watching.s3.copy_object(
        Bucket="scans", Key="in/copy.pdf", CopySource={"Bucket": "scans", "Key": "in/parts.pdf"}
    )
    watching.put("in/folder/", b"")

    found = watching.consume()

    assert found == [("in/copy.pdf", 5 * MIB + 5), ("in/parts.pdf", 5 * MIB + 5)]


def test_tags_and_deletions_make_no_document(watching: Watching) -> None:
    through_a_queue(watching)
    watching.put("in/a.pdf")
    watching.put("in/gone.pdf")
    watching.s3.put_object_tagging(
        Bucket="scans", Key="in/a.pdf", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}
    )
    watching.s3.delete_object(Bucket="scans", Key="in/gone.pdf")

    assert watching.consume() == [("in/a.pdf", 8)]


def test_in_a_bucket_with_versions_each_version_is_a_document(watching: Watching) -> None:
    watching.s3.put_bucket_versioning(Bucket="scans", VersioningConfiguration={"Status": "Enabled"})
    through_a_queue(watching)
    watching.put("in/a.pdf")
    first = watching.consume()
    watching.put("in/a.pdf", b"%PDF-1.7 longer")

    second = watching.consume()

    assert (first, second) == ([("in/a.pdf", 8)], [("in/a.pdf", 8), ("in/a.pdf", 15)])
    versions = {row.source["version_id"] for row in documents_in(watching.database)}
    assert len(versions - {None}) == 2
