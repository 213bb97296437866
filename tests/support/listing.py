"""Filling batches in the process of a test, and buckets to fill them from."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from api.accept_document import PageLimits
from api.admission import Admission, Limits, count_load
from api.fill_batches import ListingRules, fill_for_a_turn, fill_until
from api.place_settings import AllowedSource
from db.engine import Database, Transaction
from db.states import Priority
from storage.object_store import ObjectStore
from tests.support.services import S3Bucket, s3_client

TENANT = "archive"
PREFIX = "in/"
# Such as people give, and such as programs stumble over; all of them names of one file each.
ODD_KEYS = [
    "in/a b.pdf",
    "in/a+b.pdf",
    "in/a%20b.pdf",
    "in/a%2Fb.pdf",
    "in/Größe 5 %.pdf",
    "in/文書/😀.pdf",
    "in/line\nbreak.pdf",
    "in/tab\tstop.pdf",
    "in/'a\"<b>&c.pdf",
    "in/a?b=c&d#e;f:g.pdf",
    "in/deep/er/still/c.pdf",
    "in/deep-er.pdf",
    "in/deep er.pdf",
    "in/deep.pdf",
    "in/~b*(c)!.pdf",
    "in/end.pdf ",
    "in/" + "long" * 60 + ".pdf",
]


def allowed_in(bucket: S3Bucket) -> AllowedSource:
    return AllowedSource(bucket=bucket.name, prefix=PREFIX, tenants=frozenset({TENANT}))


def rules_for(*buckets: S3Bucket, **values: Any) -> ListingRules:
    """Return rules by which a claim that nobody renews is free at once."""
    return ListingRules(**{
        "allowed": tuple(map(allowed_in, buckets)),
        "page_limits": PageLimits(max_pages=10_000, render_max_pixels=60_000_000),
        "max_manifest_bytes": 2**30,
        "lease_s": 0,
        "renew_every_s": 60,
        "retry_delay_s": 0,
        "max_failures": 3,
        **values,
    })


def admission_of(database: Database, *, max_pages: int = 10**9) -> Admission:
    limits = Limits(max_pages, 10**18)
    return Admission(
        partial(count_load, database.transaction), dict.fromkeys(Priority, limits), cache_s=0
    )


def take_turn(
    database: Database,
    store: ObjectStore,
    rules: ListingRules,
    *,
    transaction: Transaction | None = None,
    admission: Admission | None = None,
    stop: threading.Event | None = None,
) -> bool:
    """Let one listing have its turn; False: none is due."""
    return fill_for_a_turn(
        stop or threading.Event(),
        transaction=transaction or database.transaction,
        store=store,
        admission=admission or admission_of(database),
        rules=rules,
    )


def fill(database: Database, store: ObjectStore, rules: ListingRules) -> None:
    """Let listings have their turns until none is due any more."""
    while take_turn(database, store, rules):
        pass


@contextmanager
def listing_in_thread(
    database: Database, store: ObjectStore, rules: ListingRules
) -> Iterator[None]:
    """Do what the thread of ``reconcile`` does, while the block runs."""
    stop = threading.Event()
    thread = threading.Thread(
        target=fill_until,
        args=[stop],
        kwargs={
            "transaction": database.transaction,
            "store": store,
            "admission": admission_of(database),
            "rules": rules,
            "interval_s": 0.05,
        },
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def put_all(
    bucket: S3Bucket, keys: Iterable[str], *, body: Callable[[str], bytes] = str.encode
) -> None:
    """Put an object under each key, eight at once."""
    client = s3_client(bucket)

    def put(key: str) -> None:
        client.put_object(Bucket=bucket.name, Key=key, Body=body(key))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(put, keys))
    client.close()
