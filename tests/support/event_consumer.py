"""``pagefleet s3-events`` as a process of its own, and what it reads."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from db.engine import Database
from tests.support.aws_servers import AwsServer
from tests.support.commands import ROOT
from tests.support.services import S3Bucket


@contextmanager
def consuming(environment: dict[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run ``pagefleet s3-events``; it is killed with the block, if it still runs."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "s3-events"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def environment_of(
    own: S3Bucket, aws: AwsServer, *, database_url: str, queue_url: str, home: Path
) -> dict[str, str]:
    watched = [{"bucket": "scans", "prefix": "in/", "tenant": "archive"}]
    return {
        "PATH": os.environ["PATH"],
        "PAGEFLEET_HOME": str(home),
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_REDIS_URL": "redis://unused",
        **own.environment(),
        "PAGEFLEET_S3_EVENTS_WATCHED": json.dumps(watched),
        "PAGEFLEET_S3_EVENTS_QUEUE_URL": queue_url,
        "PAGEFLEET_S3_EVENTS_QUEUE_ENDPOINT_URL": aws.url,
        "PAGEFLEET_S3_EVENTS_VISIBILITY_S": "30",
        "PAGEFLEET_S3_EVENTS_WAIT_S": "1",
    }


def count_documents(database: Database) -> int:
    with database.transaction() as session:
        return int(session.scalar(text("SELECT count(*) FROM documents")) or 0)


def is_empty(aws: AwsServer, queue_url: str) -> bool:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = aws.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)
    return {int(answer["Attributes"][name]) for name in names} == {0}
