"""Listings whose process dies: each key becomes one document, whenever that happens.

``LISTING_OBJECTS=100000`` lists as many keys; by default there are fewer, for the time it takes.
"""

import csv
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from db.engine import Database, Session
from storage.s3 import S3ObjectStore
from tests.support.api_server import RunningApi, documents_in, wait_until
from tests.support.listing import ODD_KEYS, fill, put_all, rules_for, take_turn
from tests.support.processes import ROOT
from tests.support.services import S3Bucket

# Three pages of the listing: one for each kill, and a last one.
OBJECTS = int(os.environ.get("LISTING_OBJECTS", "2500"))
KEYS = [f"in/{number // 1_000:03}/{number:06} ü+%.pdf" for number in range(OBJECTS)]
KILLS_AT = (1, OBJECTS // 2)
# What a page of the listing, its rows and what the allocator keeps of them come to.
GROWTH_MIB = 64
TELLING_OBJECTS = 50_000
"""The rows of so many keys, kept, would take more than that."""


class DeathError(BaseException):
    """The end of a process, as far as one in the process itself can have it."""


@pytest.fixture
def api(bucket_api: RunningApi) -> RunningApi:
    return bucket_api


class DyingTransactions:
    """Transactions of a process that dies in one of them: before its COMMIT, or after it."""

    def __init__(self, database: Database, *, number: int, is_after: bool) -> None:
        self._database = database
        self._left = number
        self._is_after = is_after

    @contextmanager
    def __call__(self) -> Iterator[Session]:
        self._left -= 1
        with self._database.transaction() as session:
            yield session
            if self._left == 0 and not self._is_after:
                raise DeathError
        if self._left == 0:
            raise DeathError


def source_of(scans: S3Bucket, kind: str, keys: list[str]) -> dict[str, Any]:
    if kind == "prefix":
        return {"prefix": {"bucket": scans.name, "prefix": "in/"}}
    if kind == "objects":
        return {"objects": [{"bucket": scans.name, "key": key} for key in keys]}
    return {"manifest": {"bucket": scans.name, "key": "in/m.csv"}}


@pytest.mark.parametrize("is_after", [False, True], ids=["before COMMIT", "after COMMIT"])
@pytest.mark.parametrize("kind", ["prefix", "objects", "manifest"])
def test_whoever_dies_at_a_commit_is_followed_and_nothing_is_entered_twice(
    api: RunningApi,
    scans: S3Bucket,
    store: S3ObjectStore,
    kind: str,
    is_after: bool,  # noqa: FBT001 - which of two tests
) -> None:
    keys = sorted(ODD_KEYS)[:5]
    put_all(scans, keys)
    if kind == "manifest":
        written = io.StringIO()
        csv.writer(written).writerows([["path"], *([f"s3://{scans.name}/{key}"] for key in keys)])
        put_all(scans, ["in/m.csv"], body=lambda _: written.getvalue().encode())
    batch = api.client.post(
        "/v1/batches", json={"name": "boxes", **source_of(scans, kind, keys)}
    ).json()
    rules = rules_for(scans, page_objects=2, max_failures=100)
    deaths = 0

    # In its first transaction, then in its second, and so on until nothing is left to be done.
    for number in range(1, 30):
        dying = DyingTransactions(api.database, number=number, is_after=is_after)
        try:
            is_left = take_turn(api.database, store, rules, transaction=dying)
        except DeathError:
            deaths += 1
            continue
        if not is_left:
            break
    fill(api.database, store, rules)

    view = api.client.get(batch["links"]["self"]).json()
    assert deaths > 3
    assert sorted(each.source["key"] for each in documents_in(api.database)) == keys
    assert (view["listing"]["is_done"], view["error"]) == (True, None)
    assert (view["listing"]["found"], view["listing"]["duplicates"]) == (len(keys), 0)


@pytest.fixture
def long_batch(api: RunningApi, scans: S3Bucket) -> dict[str, Any]:
    """A batch that is to be filled with all keys."""
    put_all(scans, KEYS, body=lambda _: b"%PDF-1.7")
    batch: dict[str, Any] = api.client.post(
        "/v1/batches", json={"name": "boxes", **source_of(scans, "prefix", KEYS)}
    ).json()
    return batch


@pytest.fixture
def environment(
    scans: S3Bucket, s3_bucket: S3Bucket, database_url: str, redis_url: str, tmp_path: Path
) -> dict[str, str]:
    """What the program that lists is told."""
    return {
        "PATH": os.environ["PATH"],
        "PAGEFLEET_HOME": str(tmp_path),
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_REDIS_URL": redis_url,
        **s3_bucket.environment(),
        "PAGEFLEET_API_SOURCES": f'[{{"bucket": "{scans.name}", "prefix": "in/"}}]',
        "PAGEFLEET_LEASE_S": "2",
        "PAGEFLEET_SWEEP_INTERVAL_S": "0.2",
    }


@contextmanager
def reconciling(environment: dict[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the program that lists, and end it as a crash does."""
    with log.open("ab") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "reconcile"],
            cwd=ROOT,
            env=environment,
            stdout=written,
            stderr=written,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def resident_mib(process: "subprocess.Popen[bytes]", what: str) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    match = re.search(rf"^{what}:\s+(\d+) kB$", status, re.MULTILINE)
    assert match is not None
    return int(match[1]) / 1_024


def count(database: Database) -> int:
    with database.transaction() as session:
        return int(session.scalar(text("SELECT count(*) FROM documents")) or 0)


def wait_for_all(api: RunningApi, batch: dict[str, Any]) -> None:
    def is_done() -> bool:
        with api.database.transaction() as session:
            return bool(
                session.scalar(
                    text("SELECT finished_at IS NOT NULL FROM batch_listings WHERE id = :id"),
                    {"id": batch["id"]},
                )
            )

    for _ in range(max(OBJECTS // 5_000, 1)):
        try:
            wait_until(is_done, what="the end of the listing")
        except TimeoutError:
            continue
        return
    raise TimeoutError("the listing has no end")


@pytest.mark.timeout(3_000)
def test_a_long_prefix_is_listed_by_whoever_lives(
    api: RunningApi, long_batch: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "reconcile.log"

    for killed_at in KILLS_AT:
        with reconciling(environment, log):
            wait_until(lambda at=killed_at: count(api.database) >= at, what=f"{killed_at} keys")
    with reconciling(environment, log):
        wait_for_all(api, long_batch)

    view = api.client.get(long_batch["links"]["self"]).json()
    assert view["listing"]["found"] == OBJECTS, log.read_text()
    assert view["listing"]["duplicates"] == 0
    assert sorted(each.source["key"] for each in documents_in(api.database)) == KEYS


@pytest.mark.timeout(3_000)
@pytest.mark.skipif(OBJECTS < TELLING_OBJECTS, reason="too few keys to tell")
def test_a_long_prefix_is_listed_in_the_memory_of_a_page(
    api: RunningApi, long_batch: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    with reconciling(environment, tmp_path / "reconcile.log") as process:
        wait_until(lambda: count(api.database) > 0, what="a page")
        early_mib = resident_mib(process, "VmRSS")
        wait_for_all(api, long_batch)
        late_mib = resident_mib(process, "VmHWM")

    print(f"{OBJECTS} keys: {early_mib:.0f} MiB after a page, at most {late_mib:.0f}")  # noqa: T201 - a figure to be read
    assert late_mib - early_mib < GROWTH_MIB
