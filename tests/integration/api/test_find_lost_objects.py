"""Objects that no event told of are found by listing, in the memory of one page."""

import tracemalloc
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from api.find_lost_objects import PAGE_OBJECTS, find_lost_objects
from api.s3_events.event import ObjectEvent
from api.take_in_object import Outcome
from db.engine import Database
from storage.memory import InMemoryObjectStore
from storage.object_store import StoredObject

OBJECTS = 100_000


class LongListing(InMemoryObjectStore):
    """A bucket of a hundred thousand keys, of which none is in memory before it is listed."""

    def other_bucket(self, name: str) -> "LongListing":
        del name
        return self

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredObject]:
        del after
        return (StoredObject(f"{prefix}{n:06} ü+%.pdf", 8, f"e{n}") for n in range(OBJECTS))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    with capture_logs():
        yield database
    database.dispose()


def know_all_but(database: Database, lost: list[int]) -> None:
    with database.transaction() as session:
        session.execute(
            text(
                "INSERT INTO s3_events (bucket, key, version_id, etag, document_id)"
                " SELECT 'scans', 'in/' || lpad(n::text, 6, '0') || ' ü+%.pdf', '', 'e' || n,"
                " gen_random_uuid() FROM generate_series(0, :last) n WHERE n != ALL(:lost)"
            ),
            {"last": OBJECTS - 1, "lost": lost},
        )


def test_of_a_hundred_thousand_objects_the_lost_ones_are_taken_in(database: Database) -> None:
    know_all_but(database, [0, 1_000, 99_999])
    taken: list[ObjectEvent] = []
    pages: list[int] = []

    def take_in(event: ObjectEvent) -> Outcome:
        taken.append(event)
        return Outcome.ACCEPTED

    tracemalloc.start()
    counts = find_lost_objects(
        "scans",
        "in/",
        store=LongListing(),
        transaction=database.transaction,
        take_in=take_in,
        after_page=lambda found: pages.append(sum(found.values())),
    )
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert counts == {Outcome.KNOWN: OBJECTS - 3, Outcome.ACCEPTED: 3}
    assert [event.key[:9] for event in taken] == ["in/000000", "in/001000", "in/099999"]
    assert pages == list(range(PAGE_OBJECTS, OBJECTS + 1, PAGE_OBJECTS))
    # A hundred thousand keys and etags alone are more than twenty.
    assert peak_bytes < 12 * 2**20
