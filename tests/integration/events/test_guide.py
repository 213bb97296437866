"""The commands of docs/s3-events.md, as they stand there."""

import re
import tomllib
from pathlib import Path

import pytest

from api.settings import ApiSettings
from cli.stack.leash import Leash
from cli.stack.seaweedfs import SeaweedFS, Webhook
from db.engine import Database
from tests.support import services
from tests.support.aws_servers import ACCOUNT, AwsServer
from tests.support.event_consumer import count_documents
from tests.support.fleet import wait_for
from tests.support.guide_blocks import blocks_run_by
from tests.support.guide_shell import GuideShell
from tests.support.guides import DOCS

GUIDE = (DOCS / "s3-events.md").read_text(encoding="utf-8")
BLOCKS = blocks_run_by(__file__)
(MAKE_QUEUE,) = [block.code for block in BLOCKS if block.language == "python"]
WATCHED, CONSUME, TOKEN, LISTING = [block.code for block in BLOCKS if block.language == "sh"]
LIMIT_S = 60.0


@pytest.fixture
def shell(aws: AwsServer, database_url: str, tmp_path: Path) -> GuideShell:
    """The shell of somebody whose settings are those of the API, and the buckets."""
    own = aws.bucket("pagefleet")
    aws.make_bucket(own.name)
    aws.make_bucket("scans")
    return GuideShell(
        tmp_path,
        variables={
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": "secret",
            "PAGEFLEET_HOME": str(tmp_path),
            "PAGEFLEET_DATABASE_URL": database_url,
            "PAGEFLEET_REDIS_URL": "redis://unused",
            "PAGEFLEET_S3_EVENTS_QUEUE_ENDPOINT_URL": aws.url,
            "PAGEFLEET_S3_EVENTS_WAIT_S": "1",
            **own.environment(),
        },
        replaced={r"https://sqs\.\S+": "$QUEUE_URL"},
    )


def test_an_object_is_told_of_by_the_queue_of_the_guide(
    aws: AwsServer, shell: GuideShell, database_url: str
) -> None:
    made = shell.python(MAKE_QUEUE)
    assert made.returncode == 0, made.stderr
    shell.give({"QUEUE_URL": made.stdout.strip().removeprefix("PAGEFLEET_S3_EVENTS_QUEUE_URL=")})
    shell.sh(WATCHED).check_returncode()
    log = shell.folder / "log"
    database = Database(database_url, pool_size=1)

    with shell.started(CONSUME, log) as consumer:
        for key in ("in/a.pdf", "out/b.pdf", "in/urgent/c.pdf"):
            aws.client("s3").put_object(Bucket="scans", Key=key, Body=b"%PDF-1.7 " + key.encode())
        wait_for(
            "the documents",
            lambda: consumer.poll() is not None or count_documents(database) == 2,
            timeout_s=LIMIT_S,
        )
        consumer.terminate()
        status = consumer.wait(LIMIT_S)

    found = count_documents(database)
    database.dispose()
    assert (found, status) == (2, 0), log.read_text("utf-8")


def test_what_no_event_told_of_is_found_by_the_listing_of_the_guide(
    aws: AwsServer, shell: GuideShell
) -> None:
    aws.client("s3").put_object(Bucket="scans", Key="in/a.pdf", Body=b"%PDF-1.7")
    shell.sh(WATCHED).check_returncode()

    done = shell.sh(LISTING)

    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "Done: 1 object (1 accepted)"


def test_the_token_of_the_guide_is_one_that_the_api_takes(shell: GuideShell) -> None:
    shell.sh(TOKEN).check_returncode()
    shown = shell.sh('printf %s "$PAGEFLEET_S3_EVENTS_TOKEN"').stdout

    settings = ApiSettings.model_validate({
        "database_url": "postgresql://unused",
        "redis_url": "redis://unused",
        "s3_bucket": "unused",
        "s3_events_token": shown,
    })
    assert settings.s3_events_token is not None
    assert settings.s3_events_token.get_secret_value() == shown


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


def test_the_webhook_of_the_guide_is_the_one_that_was_tried(
    services_folder: Path, leash: Leash
) -> None:
    folder = services_folder / "configured-seaweedfs"
    webhook = Webhook("https://pagefleet.example/v1/events/s3", "the token")

    with services.running(SeaweedFS(folder, leash=leash, webhook=webhook)):
        written = (folder / ".seaweedfs" / "notification.toml").read_text(encoding="utf-8")

    assert tomllib.loads(written) == tomllib.loads(block("toml"))
