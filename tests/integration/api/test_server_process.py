"""The API as users run it: one process of its own, on the real servers."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import httpx
import redis

from db.engine import Database
from storage import keys
from storage.object_store import ObjectStore
from storage.s3 import S3ObjectStore
from tests.support.api_server import (
    client_of,
    documents_in,
    free_port,
    make_key,
    served_in_process,
)
from tests.support.services import S3Bucket

MIB = 2**20
PDF = b"%PDF-1.7\n" + bytes(2_000)
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="private-name.pdf"\r\n\r\n'
FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def large_form(size_mib: int) -> Iterator[bytes]:
    yield HEAD + b"%PDF-1.7"
    for _ in range(size_mib):
        yield bytes(MIB)
    yield b"\r\n--b--\r\n"


def peak_memory_bytes(process: subprocess.Popen[str]) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    (kibibytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kibibytes) * 1_024


def size_in(store: ObjectStore, document_id: str) -> int:
    return store.head(keys.source_key(UUID(document_id))).size_bytes


def test_a_large_upload_needs_little_memory(
    database: Database, database_url: str, redis_url: str, s3_bucket: S3Bucket, store: S3ObjectStore
) -> None:
    with (
        served_in_process(database_url=database_url, redis_url=redis_url, bucket=s3_bucket) as (
            url,
            process,
        ),
        client_of(url, make_key(database, "archive")) as client,
    ):
        client.post("/v1/documents", files={"file": ("a.pdf", PDF)}).raise_for_status()
        before_bytes = peak_memory_bytes(process)

        response = client.post("/v1/documents", content=large_form(300), headers=FORM)
        extra_bytes = peak_memory_bytes(process) - before_bytes

    assert response.status_code == 202
    assert size_in(store, response.json()["id"]) == 300 * MIB + len(b"%PDF-1.7")
    assert extra_bytes < 150 * MIB


def test_the_process_is_ready_and_sends_a_message_for_a_document(
    database: Database, database_url: str, redis_url: str, s3_bucket: S3Bucket
) -> None:
    with (
        served_in_process(database_url=database_url, redis_url=redis_url, bucket=s3_bucket) as (
            url,
            _,
        ),
        client_of(url, make_key(database, "archive")) as client,
    ):
        ready = client.get("/readyz")
        accepted = client.post("/v1/documents", files={"file": ("a.pdf", PDF)})

    with redis.Redis.from_url(redis_url) as broker:
        (message,) = broker.lrange("pagefleet:split", 0, -1)
    assert ready.json()["servers"] == {"database": True, "broker": True, "storage": True}
    assert accepted.status_code == 202
    assert accepted.json()["id"] in str(message)
    assert b"a.pdf" not in message


def test_a_document_is_accepted_while_redis_is_down(
    database: Database, database_url: str, s3_bucket: S3Bucket
) -> None:
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    with (
        served_in_process(database_url=database_url, redis_url=nowhere, bucket=s3_bucket) as (
            url,
            _,
        ),
        client_of(url, make_key(database, "archive")) as client,
    ):
        response = client.post("/v1/documents", files={"file": ("a.pdf", PDF)})
        ready = client.get("/readyz")

    (row,) = documents_in(database)
    assert response.status_code == 202
    assert row.dispatch_after is not None
    assert ready.status_code == 503
    assert ready.json()["servers"] == {"database": True, "broker": False, "storage": True}


def test_the_log_is_json_without_keys_and_file_names(
    database: Database, database_url: str, redis_url: str, s3_bucket: S3Bucket
) -> None:
    key = make_key(database, "archive")
    with served_in_process(database_url=database_url, redis_url=redis_url, bucket=s3_bucket) as (
        url,
        process,
    ):
        with client_of(url, key) as client:
            client.post("/v1/documents", content=large_form(1), headers=FORM)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)

    lines = [json.loads(line) for line in output.splitlines()]
    (request,) = [line for line in lines if line["event"] == "request finished"]
    assert (request["route"], request["status"]) == ("/v1/documents", 202)
    assert (request["tenant"], request["level"]) == ("archive", "info")
    assert key.rpartition("_")[2] not in output
    assert "private-name" not in output


def test_a_signal_ends_the_process_after_its_requests(
    database: Database, database_url: str, redis_url: str, s3_bucket: S3Bucket, store: S3ObjectStore
) -> None:
    def form_that_is_interrupted(process: subprocess.Popen[str]) -> Iterator[bytes]:
        parts = large_form(20)
        yield next(parts)
        yield next(parts)
        process.send_signal(signal.SIGTERM)
        yield from parts

    with (
        served_in_process(database_url=database_url, redis_url=redis_url, bucket=s3_bucket) as (
            url,
            process,
        ),
        client_of(url, make_key(database, "archive")) as client,
    ):
        response: httpx.Response = client.post(
            "/v1/documents", content=form_that_is_interrupted(process), headers=FORM
        )
        process.communicate(timeout=30)

    assert response.status_code == 202
    assert size_in(store, response.json()["id"]) == 20 * MIB + len(b"%PDF-1.7")
    assert process.returncode in {0, -signal.SIGTERM}
