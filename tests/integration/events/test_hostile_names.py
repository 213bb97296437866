"""Objects with hostile names, and a consumer that is killed three times.

``HOSTILE_OBJECTS=1000`` makes as many of them; by default there are fewer, for the time it takes.
"""

import os
import random
import threading
from pathlib import Path

import pytest

from db.engine import Database
from tests.support.api_server import documents_in
from tests.support.aws_servers import AwsServer
from tests.support.event_consumer import consuming, count_documents, environment_of, is_empty
from tests.support.fleet import wait_for

OBJECTS = int(os.environ.get("HOSTILE_OBJECTS", "60"))
KILLS_AT = (OBJECTS // 10, OBJECTS * 4 // 10, OBJECTS * 7 // 10)
PIECES = [
    *(" ", "  ", "+", "%", "%20", "%2B", "%00", "\n", "\r\n", "\t", "/", "//", "..", "&", "<", ">"),
    *('"', "'", "\\", "?", "#", "=", ";", ":", "*", "|", "~", "$", "`", "{", "}", "[", "]", "^"),
    *("ü", "u\u0308", "ß", "文", "😀", "\u202e", "\u00a0", "\ufeff", "é", "Ω", "\x7f"),
    *("a", "B", "7", ".pdf", "s3:", "null", "None", "..%2f"),
]
LIMIT_S = 400


def hostile_keys() -> list[str]:
    chance = random.Random(7)  # noqa: S311 - the same names in every run
    keys: set[str] = set()
    while len(keys) < OBJECTS:
        keys.add("in/" + "".join(chance.choices(PIECES, k=chance.randint(1, 12))))
    return sorted(keys)


@pytest.mark.timeout(900)
def test_hostile_names_become_a_document_each_whoever_is_killed(
    aws: AwsServer, database_url: str, tmp_path: Path
) -> None:
    own = aws.bucket("pagefleet")
    aws.make_bucket(own.name)
    aws.make_bucket("scans")
    queue_url, queue_arn = aws.queue("events")
    aws.notify("scans", queue_arn, prefix="in/")
    environment = environment_of(
        own, aws, database_url=database_url, queue_url=queue_url, home=tmp_path
    )
    log = tmp_path / "s3-events.log"
    database = Database(database_url)
    keys = hostile_keys()

    def put_all() -> None:
        client = aws.client("s3")
        for number, key in enumerate(keys):
            client.put_object(Bucket="scans", Key=key, Body=b"%%PDF-1.7 %d" % number)

    putting = threading.Thread(target=put_all)
    putting.start()
    for documents in KILLS_AT:
        with consuming(environment, log):
            wait_for(
                f"{documents} documents",
                lambda wanted=documents: count_documents(database) >= wanted,
                timeout_s=LIMIT_S,
            )
    with consuming(environment, log) as last:
        putting.join()
        wait_for("all documents", lambda: count_documents(database) >= OBJECTS, timeout_s=LIMIT_S)
        # What was received by those that were killed comes again, and is known.
        wait_for("an empty queue", lambda: is_empty(aws, queue_url), timeout_s=LIMIT_S)
        last.terminate()
        status = last.wait(30)

    rows = documents_in(database)
    database.dispose()
    assert sorted(row.source["key"] for row in rows) == keys
    assert {row.tenant for row in rows} == {"archive"}
    assert status == 0, log.read_text()
