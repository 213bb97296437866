"""A fleet under faults: real servers, real processes, small documents, and short delays.

The documents have a text layer, so that a page costs no recognition, and storage can be made
slow: work then lasts long enough to be disturbed and still needs hardly any processor.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from bench.faults.kill_points import HOOK_FOLDER
from bench.faults.s3_proxy import S3Proxy, Weather
from tests.support.fault_checks import (
    check_nothing_lost_or_done_twice,
    log_moves,
    results_as_bytes,
)
from tests.support.fleet import Fleet, lent_fleet
from tests.support.postgres_faults import HeldPostgres
from tests.support.services import S3Bucket, s3_client
from tests.support.text_pdfs import PROSE, prose_page, write_lines
from workers.settings import WorkerSettings

TIMEOUT_S = 120
# Of each request to the storage while a batch is disturbed.
STORAGE_DELAY_S = 0.3
DOCUMENTS = 4
PAGES = 3
SETTINGS = {
    "PAGEFLEET_LEASE_S": "3",
    "PAGEFLEET_DISPATCH_GRACE_S": "2",
    "PAGEFLEET_RETRY_DELAY_S": "0.5",
    "PAGEFLEET_SWEEP_INTERVAL_S": "0.5",
    "PAGEFLEET_CHUNK_PAGES": "1",
    # More than the kills of the longest test, each of which may hit the same chunk. That the
    # default would have been enough is checked after every other test.
    "PAGEFLEET_MAX_ATTEMPTS": "60",
    # Nobody looks at these processes' end, so it need not be soft.
    "PAGEFLEET_SOFT_SHUTDOWN_S": "1",
}
# Two processes and not two slots, so that one of them can be stopped as a whole.
RECOGNIZERS = ("recognizer-1", "recognizer-2")
_RECOGNIZE = ("worker", "--queues", "recognize", "--slots", "1")
ASSEMBLER = "assembler"
_ASSEMBLE = ("worker", "--queues", "split,assemble", "--slots", "1")


@dataclass(frozen=True, kw_only=True)
class FaultBench:
    """What a test of a fault needs.

    Attributes:
        storage: is between the fleet and ``bucket``.
        slow_start: a file; see ``bench/faults/hook/slow_start.py``.
        paths: the documents of a batch.
        undisturbed: their results in a run without fault, by file name.
    """

    fleet: Fleet
    storage: S3Proxy
    bucket: S3Bucket
    slow_start: Path
    paths: Sequence[Path]
    undisturbed: dict[str, bytes]

    def submit(self) -> dict[str, UUID]:
        return self.fleet.submit_all(self.paths)

    def submit_one(self) -> dict[str, UUID]:
        """Submit the document that has one page, and so one chunk."""
        return self.fleet.submit_all(self.paths[:1])

    @contextmanager
    def slow_starts(self, seconds: float) -> Iterator[None]:
        """Let pool children that start meanwhile take this much longer."""
        self.slow_start.write_text(str(seconds))
        try:
            yield
        finally:
            self.slow_start.unlink()

    def holders(self) -> list[int]:
        """Return the pool children that hold a document or chunk right now."""
        rows = self.fleet.rows(
            "SELECT worker FROM chunks WHERE state = 'running'"
            " UNION SELECT worker FROM documents WHERE state IN ('splitting', 'assembling')"
        )
        return [int(worker.rpartition(":")[2]) for (worker,) in rows]

    def delete(self, key: str) -> None:
        """Remove an object behind everybody's back."""
        client = s3_client(self.bucket)
        client.delete_object(Bucket=self.bucket.name, Key=key)
        client.close()

    @contextmanager
    def batch_under_way(self) -> Iterator[dict[str, UUID]]:
        """Submit all documents and hold their work up; yields while the first chunk is held."""
        with self.storage.during(Weather("slow", delay_s=STORAGE_DELAY_S)):
            ids = self.submit()
            self.fleet.wait_for_claim()
            yield ids

    def check(self, ids: dict[str, UUID], *, timeout_s: float = TIMEOUT_S) -> None:
        """See ``tests.support.fault_checks``."""
        self.check_many_killed(ids, timeout_s=timeout_s)
        spent = self.fleet.rows(
            "SELECT max(attempt - excused) FROM chunks WHERE document_id = ANY(%s)"
            " UNION ALL SELECT max(attempt - excused) FROM documents WHERE id = ANY(%s)",
            *[list(ids.values())] * 2,
        )
        assert max(spent) <= (WorkerSettings.model_fields["max_attempts"].default,)

    def check_many_killed(self, ids: dict[str, UUID], *, timeout_s: float = TIMEOUT_S) -> None:
        """Check all but that no part was tried more often than the default setting allows."""
        expected = {name: self.undisturbed[name] for name in ids}
        check_nothing_lost_or_done_twice(self.fleet, ids, expected, timeout_s=timeout_s)


@contextmanager
def fault_bench(
    *, database_url: str, redis_url: str, bucket: S3Bucket, home: Path
) -> Iterator[FaultBench]:
    """Run a fleet, and one batch through it undisturbed."""
    slow_start = home / "slow-start"
    storage = S3Proxy(urlsplit(bucket.endpoint_url).port or 0)
    with ExitStack() as stack:
        storage.start()
        stack.callback(storage.stop)
        fleet = stack.enter_context(
            lent_fleet(
                database_url=database_url,
                redis_url=redis_url,
                bucket=replace(bucket, endpoint_url=storage.endpoint_url),
                home=home,
            )
        )
        log_moves(fleet.database)
        HeldPostgres(database_url).install()
        fleet.environment |= {
            **SETTINGS,
            "PYTHONPATH": str(HOOK_FOLDER),
            "FAULT_HOOKS": "slow_start",
            "SLOW_START_FILE": str(slow_start),
        }
        _start(fleet)
        paths = write_batch(home)
        yield FaultBench(
            fleet=fleet,
            storage=storage,
            bucket=bucket,
            slow_start=slow_start,
            paths=paths,
            undisturbed=results_as_bytes(fleet, fleet.submit_all(paths), timeout_s=TIMEOUT_S),
        )


def write_batch(folder: Path) -> list[Path]:
    """Write documents of text, no two of them the same; the first has one page."""
    paths = []
    for number in range(DOCUMENTS):
        document, _ = prose_page([f"letter {number} page 1", *PROSE])
        for page_number in range(2, PAGES + 1 if number else 2):
            page = document.new_page(width=595, height=842)
            write_lines(page, [f"letter {number} page {page_number}", *PROSE])
        paths.append(folder / f"letter-{number}.pdf")
        document.save(paths[-1])
    return paths


def _start(fleet: Fleet) -> None:
    for name in RECOGNIZERS:
        fleet.start(name, *_RECOGNIZE, "--name", f"{name}@%h")
    fleet.start(ASSEMBLER, *_ASSEMBLE)
    fleet.start("reconciler", "reconcile")
    fleet.start("api", "api")
    fleet.wait_for_api()
