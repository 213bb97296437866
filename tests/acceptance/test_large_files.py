"""Large files and archives cost storage and time, and hardly any memory of any process.

``LARGE_FILE_MIB`` makes the file larger than is worth the time of every run; the option
``--log-cli-level=INFO`` shows the figures.
"""

import logging
import os
import socket
import tarfile
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from bench.process_usage import peaks_of_tree
from tests.support.commands import measure_pagefleet
from tests.support.fleet import Fleet, wait_for
from tests.support.pdf_files import large_pdf
from tests.support.services import S3Bucket, s3_client

log = logging.getLogger(__name__)

MIB = 2**20
FILE_BYTES = int(os.environ.get("LARGE_FILE_MIB", "200")) * MIB
ARCHIVE_MEMBERS = 10
MEMBER_BYTES = 10 * MIB
MOST_BYTES = 300 * MIB
TEXT_ONLY = {"options": '{"mode": "text"}'}

pytestmark = pytest.mark.timeout(900)


def peaks(fleet: Fleet) -> dict[str, int]:
    """Return the most that any one process of each kind ever held resident, in bytes."""
    return {
        name: max(peaks_of_tree(fleet.pid(name)))
        for name in ("api", "assembler", "recognizer", "reconciler")
    }


def read(fleet: Fleet, path: Path) -> str:
    """Send a file whose pages state their text through the fleet; return the text."""
    with fleet.client as client, path.open("rb") as file:
        answer = client.post(
            "/v1/documents", files={"file": (path.name, file)}, data=TEXT_ONLY, timeout=600
        )
    assert answer.status_code == 202, answer.text
    document_id = UUID(answer.json()["id"])
    document = fleet.wait_until_final(document_id, timeout_s=600)
    assert document["state"] == "succeeded", document
    [page] = fleet.result(document_id)["pages"]
    return "\n".join(page["lines"][number]["text"] for number in page["reading_order"])


def test_a_large_file_is_read_in_little_memory(fleet: Fleet, tmp_path: Path) -> None:
    small, large = tmp_path / "small.pdf", tmp_path / "large.pdf"
    large_pdf(small, "A small box", size_bytes=MIB)
    large_pdf(large, "A large box", size_bytes=FILE_BYTES)
    read(fleet, small)
    before = peaks(fleet)  # a reader's holds the models, whatever the file

    text = read(fleet, large)

    after = peaks(fleet)
    log.info("%d MiB; peaks in MiB: %s to %s", FILE_BYTES // MIB, _mib(before), _mib(after))
    assert text == "A large box"
    assert max(after.values()) < MOST_BYTES


def test_an_archive_is_sent_in_little_memory(fleet: Fleet, tmp_path: Path) -> None:
    archive = tmp_path / "boxes.tar.gz"
    member = tmp_path / "member.pdf"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        for number in range(ARCHIVE_MEMBERS):
            large_pdf(member, f"Box {number}", size_bytes=MEMBER_BYTES, is_random=True)
            packed.add(member, f"{number}.pdf")
    assert archive.stat().st_size >= ARCHIVE_MEMBERS * MEMBER_BYTES

    run = measure_pagefleet(
        *("ingest", archive, "--batch", "boxes", "--options", TEXT_ONLY["options"], "--wait"),
        *("--api-url", fleet.api_url),
        work_dir=tmp_path,
        PAGEFLEET_HOME=str(tmp_path),
        PAGEFLEET_CLIENT_API_KEY=fleet.key,
    )

    after = peaks(fleet)
    log.info("peaks in MiB: ingest %d, %s", run.peak_mib, _mib(after))
    assert run.returncode == 0, run.stderr
    assert fleet.rows("SELECT count(*) FROM documents WHERE state = 'succeeded'") == [
        (ARCHIVE_MEMBERS,)
    ]
    assert run.peak_mib * MIB < MOST_BYTES
    assert max(after.values()) < MOST_BYTES


def test_a_client_that_goes_away_leaves_nothing_behind(fleet: Fleet, s3_bucket: S3Bucket) -> None:
    """It has sent 20 MiB of 40, of which storage has taken parts."""
    boundary = "x" * 32
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n'
        "Content-Type: application/pdf\r\n\r\n"
    ).encode()
    address = urlsplit(fleet.api_url)
    client = s3_client(s3_bucket)

    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(
            f"POST /v1/documents HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Authorization: Bearer {fleet.key}\r\nContent-Length: {40 * MIB}\r\n"
            f"Content-Type: multipart/form-data; boundary={boundary}\r\n\r\n".encode()
        )
        connection.sendall(head + b"%PDF-1.7\n" + bytes(20 * MIB))
        wait_for(
            "parts in storage",
            lambda: client.list_multipart_uploads(Bucket=s3_bucket.name).get("Uploads"),
            timeout_s=60,
        )

    wait_for(
        "the end of the upload",
        lambda: not client.list_multipart_uploads(Bucket=s3_bucket.name).get("Uploads"),
        timeout_s=60,
    )
    wait_for(
        "the note's end",
        lambda: fleet.rows("SELECT count(*) FROM uploads") == [(0,)],
        timeout_s=60,
    )
    assert "Contents" not in client.list_objects_v2(Bucket=s3_bucket.name)
    assert fleet.rows("SELECT count(*) FROM documents") == [(0,)]
    client.close()


def _mib(peaks: dict[str, int]) -> dict[str, int]:
    return {name: peak // MIB for name, peak in peaks.items()}
