"""Find objects of watched places that no event told of: by listing, a page at a time.

For stores that tell nothing, and for what the others lost on the way.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from api.s3_events.event import ObjectEvent
from api.take_in_object import Outcome, TakeIn
from db import s3_events
from db.engine import Transaction
from storage.object_store import ObjectStore, StoredObject

PAGE_OBJECTS = 1_000  # of a listing; what is in memory at a time


def find_lost_objects(
    bucket: str,
    prefix: str,
    *,
    store: ObjectStore,
    transaction: Transaction,
    take_in: TakeIn,
    after_page: Callable[[Mapping[Outcome, int]], None],
) -> Mapping[Outcome, int]:
    """List a prefix and take in what is not known; return how many objects became of what.

    What is known, by key and etag, costs nothing but its place in the listing and in one query
    for a thousand. Run again, it finds nothing; beside the events, it takes in no object twice.

    Args:
        bucket: of the objects.
        prefix: of their keys.
        store: any bucket of the service.
        transaction: opens a transaction.
        take_in: handles one object as if an event had told of it.
        after_page: is told the counts after each page of the listing.

    Errors of ``take_in``, of the store and of the database pass through.
    """
    counts: Counter[Outcome] = Counter()
    listing = store.other_bucket(bucket).list(prefix)
    while page := list(islice(listing, PAGE_OBJECTS)):
        lost = list(_unknown(bucket, page, transaction))
        counts[Outcome.KNOWN] += len(page) - len(lost)
        for found in lost:
            counts[take_in(ObjectEvent(bucket, found.key, etag=found.etag))] += 1
        after_page(counts)
    return counts


def _unknown(
    bucket: str, page: list[StoredObject], transaction: Transaction
) -> Iterator[StoredObject]:
    with transaction() as session:
        known = s3_events.known(session, bucket, [(found.key, found.etag) for found in page])
    return (found for found in page if (found.key, found.etag) not in known)
