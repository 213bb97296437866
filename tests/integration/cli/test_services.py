"""The commands that become a service, run as processes on real servers."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from db import deleting
from db.engine import Database
from db.states import DocumentState
from storage import keys
from tests.support.api_server import documents_in, free_port, keys_in, open_store, wait_until
from tests.support.commands import ROOT
from tests.support.rows import TENANT, add_document
from tests.support.services import S3Bucket

PASSWORD = "blotting-paper"  # noqa: S105 - guards a server of a test


@pytest.fixture
def environment(
    database_url: str, redis_url: str, s3_bucket: S3Bucket, tmp_path: Path
) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PAGEFLEET_HOME": str(tmp_path),
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_REDIS_URL": redis_url,
        "PAGEFLEET_S3_ENDPOINT_URL": s3_bucket.endpoint_url,
        "PAGEFLEET_S3_BUCKET": s3_bucket.name,
        "PAGEFLEET_S3_REGION": s3_bucket.region,
        "PAGEFLEET_S3_ACCESS_KEY_ID": s3_bucket.access_key_id,
        "PAGEFLEET_S3_SECRET_ACCESS_KEY": s3_bucket.secret_access_key,
        "PAGEFLEET_FLOWER_PASSWORD": PASSWORD,
    }


@contextmanager
def running(environment: dict[str, str], *arguments: str) -> Iterator["Service"]:
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "cli", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    service = Service(process)
    try:
        yield service
    finally:
        process.kill()
        process.wait()


class Service:
    """A running command and what it has written so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, text: str) -> None:
        wait_until(lambda: any(text in line for line in self.lines), what=f"{text}: {self.lines}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self._reader.join()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            self.lines.extend(iter(stream.readline, ""))


def answer_of(url: str, **options: object) -> int | None:
    try:
        return httpx.get(url, trust_env=False, **options).status_code  # type: ignore[arg-type]
    except httpx.TransportError:
        return None


def test_flower_asks_for_the_password_and_changes_nothing(environment: dict[str, str]) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    account = ("pagefleet", PASSWORD)

    with running(environment, "flower", "--port", str(port)) as flower:
        wait_until(lambda: answer_of(f"{url}/") is not None, what=f"Flower: {flower.lines}")
        without_password = answer_of(f"{url}/tasks")
        with_password = answer_of(f"{url}/tasks", auth=account)
        shutdown = httpx.post(f"{url}/api/worker/shutdown/any", auth=account, trust_env=False)
        ended = flower.stop()

    assert (without_password, with_password) == (401, 200)
    assert shutdown.status_code == 403
    assert ended == 0


def test_a_worker_takes_its_queues_and_ends_at_sigterm(environment: dict[str, str]) -> None:
    with running(environment, "worker", "--queues", "split,assemble", "--slots", "1") as worker:
        worker.wait_for("ready")
        ended = worker.stop()

    assert ended == 0
    assert "Traceback" not in "".join(worker.lines)


def test_reconcile_sweeps_until_sigterm(environment: dict[str, str]) -> None:
    # The first line says that a sweep met something; a sweep with nothing to do says nothing.
    with running(environment, "reconcile") as reconcile:
        pid = reconcile.process.pid
        wait_until(
            lambda: (
                "SigCgt" in (status := Path(f"/proc/{pid}/status").read_text())
                and bool(int(status.partition("SigCgt:\t")[2].split()[0], 16) >> 14 & 1)
            ),
            what="the handler of SIGTERM",
        )
        ended = reconcile.stop()

    assert ended == 0, reconcile.lines


def test_what_a_killed_reconcile_had_begun_to_delete_is_deleted_by_the_next(
    environment: dict[str, str], database_url: str, s3_bucket: S3Bucket
) -> None:
    database = Database(database_url)
    store = open_store(s3_bucket)
    for _ in range(40):
        with database.transaction() as session:
            document_id = add_document(session, state=DocumentState.SUCCEEDED)
            for key in (keys.source_key(document_id), keys.result_key(document_id, 1)):
                store.put(key, b"x", media_type="text/plain")
            # No worker is at it that could still write.
            deleting.mark(session, document_id, tenant=TENANT, writers_s=0)
    environment = {**environment, "PAGEFLEET_DISPATCH_GRACE_S": "1"}
    environment["PAGEFLEET_SWEEP_INTERVAL_S"] = "0.5"

    with running(environment, "reconcile") as killed:
        killed.wait_for("document deleted")
        killed.process.kill()
        killed.process.wait()
    with running(environment, "reconcile") as reconcile:
        wait_until(lambda: not documents_in(database), what="the rows to go")
        ended = reconcile.stop()

    assert ended == 0
    assert keys_in(store) == []
    store.close()
    database.dispose()


def test_doctor_asks_every_server_for_an_answer(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "doctor"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )

    assert "ok      Database: answers" in done.stdout
    assert "ok      Broker: answers" in done.stdout
    assert "ok      Storage: answers" in done.stdout


def test_doctor_names_the_server_that_does_not_answer(environment: dict[str, str]) -> None:
    broken = environment | {"PAGEFLEET_REDIS_URL": "redis://:hush@127.0.0.1:9/0"}

    done = subprocess.run(
        [sys.executable, "-m", "cli", "doctor"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=broken,
    )

    assert done.returncode == 1
    assert "FAILED  Broker" in done.stdout
    assert "PAGEFLEET_REDIS_URL" in done.stdout
    assert "hush" not in done.stdout
