"""The commands of docs/s3-events.md, as they stand there."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from cli.stack.leash import Leash
from cli.stack.seaweedfs import SeaweedFS, Webhook
from tests.support import services
from tests.support.aws_servers import ACCOUNT, REGION, AwsServer
from tests.support.guides import DOCS

GUIDE = (DOCS / "s3-events.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


def test_the_queue_of_the_guide_is_told_of_new_objects(aws: AwsServer) -> None:
    aws.make_bucket("scans")

    made = subprocess.run(  # noqa: S603 - our own guide
        [sys.executable, "-c", block("python")],
        env={
            "PATH": os.environ["PATH"],
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": "secret",
            "PAGEFLEET_S3_REGION": REGION,
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    url = made.stdout.strip().removeprefix("PAGEFLEET_S3_EVENTS_QUEUE_URL=")
    aws.client("s3").put_object(Bucket="scans", Key="in/a.pdf", Body=b"%PDF-1.7")
    aws.client("s3").put_object(Bucket="scans", Key="out/b.pdf", Body=b"%PDF-1.7")
    bodies = [
        message["Body"]
        for _ in range(3)
        for message in aws
        .client("sqs")
        .receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        .get("Messages", [])
    ]

    assert sum("a.pdf" in body for body in bodies) == 1
    assert not any("b.pdf" in body for body in bodies)


def test_the_webhook_of_the_guide_is_the_one_that_was_tried(
    services_folder: Path, leash: Leash
) -> None:
    folder = services_folder / "configured-seaweedfs"
    webhook = Webhook("https://pagefleet.example/v1/events/s3", "the token")

    with services.running(SeaweedFS(folder, leash=leash, webhook=webhook)):
        written = (folder / ".seaweedfs" / "notification.toml").read_text(encoding="utf-8")

    assert tomllib.loads(written) == tomllib.loads(block("toml"))
