"""An object becomes one document, whatever is said of it, how often and in which order."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from structlog.testing import capture_logs

from api.accept_document import PageLimits
from api.admission import Admission, Limits, count_load
from api.errors import ApiError
from api.place_settings import WatchedPlace
from api.s3_events.event import ObjectEvent
from api.take_in_object import IntakeRules, Outcome, take_in_object
from db import batches
from db.engine import Database
from db.errors import DatabaseUnavailableError
from db.ids import new_id
from db.models import Batch
from db.states import BatchState, DocumentState, Priority
from storage import keys
from storage.memory import InMemoryObjectStore
from tests.support.api_server import documents_in
from workers.ocr.options import OcrOptions

OWN = "pagefleet"


class Intake:
    """What takes events in, on a store in memory."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = InMemoryObjectStore()
        self.max_pages = 1_000
        self.watched: tuple[WatchedPlace, ...] = (
            WatchedPlace(bucket="scans", prefix="in/", tenant="archive"),
        )

    def put(self, key: str, body: bytes = b"%PDF-1.7", *, bucket: str = "scans") -> str:
        bucket_of_user = self.store.other_bucket(bucket)
        bucket_of_user.put(key, body, media_type="x/y")
        return bucket_of_user.head(key).etag

    def tell(self, key: str, *, bucket: str = "scans", **said: Any) -> Outcome:
        limits = Limits(self.max_pages, 10**12)
        return take_in_object(
            ObjectEvent(bucket, key, **said),
            transaction=self.database.transaction,
            store=self.store,
            admission=Admission(
                lambda: count_load(self.database.transaction),
                dict.fromkeys(Priority, limits),
                cache_s=0,
            ),
            rules=IntakeRules(self.watched, OWN, PageLimits(100, 60_000_000)),
        )

    def keys(self) -> list[str]:
        return [row.source["key"] for row in documents_in(self.database)]


@pytest.fixture
def intake(database_url: str) -> Iterator[Intake]:
    database = Database(database_url, pool_size=8)
    with capture_logs():
        yield Intake(database)
    database.dispose()


def test_a_new_object_becomes_a_document_of_its_place(intake: Intake) -> None:
    etag = intake.put("in/a b.pdf")

    outcome = intake.tell("in/a b.pdf", etag=etag, sequencer="01")

    (row,) = documents_in(intake.database)
    assert outcome is Outcome.ACCEPTED
    assert (row.tenant, row.priority, row.filename) == ("archive", "bulk", "a b.pdf")
    assert (row.source["bucket"], row.source["etag"], row.key_id) == ("scans", etag, None)
    assert (row.state, row.deliveries) == (DocumentState.QUEUED, 0)
    assert row.dispatch_after is not None


def test_an_event_that_comes_again_makes_no_second_document(intake: Intake) -> None:
    intake.put("in/a.pdf")

    outcomes = [intake.tell("in/a.pdf", sequencer="01") for _ in range(3)]

    assert outcomes == [Outcome.ACCEPTED, Outcome.KNOWN, Outcome.KNOWN]
    assert intake.keys() == ["in/a.pdf"]


def test_events_that_come_together_make_one_document(intake: Intake) -> None:
    intake.put("in/a.pdf")

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda _: intake.tell("in/a.pdf"), range(6)))

    assert outcomes.count(Outcome.ACCEPTED) == 1
    assert intake.keys() == ["in/a.pdf"]


def test_an_object_that_is_written_over_becomes_a_second_document(intake: Intake) -> None:
    intake.put("in/a.pdf")
    intake.tell("in/a.pdf", sequencer="01")
    intake.put("in/a.pdf", b"%PDF-1.7 other")

    outcome = intake.tell("in/a.pdf", sequencer="02")

    assert outcome is Outcome.ACCEPTED
    assert len(intake.keys()) == 2


def test_an_event_that_was_overtaken_is_about_what_stands_there_now(intake: Intake) -> None:
    intake.put("in/a.pdf")
    etag = intake.put("in/a.pdf", b"%PDF-1.7 other")

    first = intake.tell("in/a.pdf", etag="of the first", sequencer="01")
    second = intake.tell("in/a.pdf", etag=etag, sequencer="02")

    (row,) = documents_in(intake.database)
    assert (first, second) == (Outcome.ACCEPTED, Outcome.KNOWN)
    assert row.source["etag"] == etag


def test_an_older_event_is_dropped(intake: Intake) -> None:
    intake.put("in/a.pdf")
    intake.tell("in/a.pdf", sequencer="0055AED6DCD90281E6")
    intake.put("in/a.pdf", b"%PDF-1.7 put back")

    outcome = intake.tell("in/a.pdf", sequencer="0055AED6DCD90281E5")

    assert outcome is Outcome.OUTDATED
    assert len(intake.keys()) == 1


def test_an_object_whose_document_was_deleted_does_not_come_again(intake: Intake) -> None:
    intake.put("in/a.pdf")
    intake.tell("in/a.pdf")
    with intake.database.transaction() as session:
        session.connection().exec_driver_sql("DELETE FROM documents")

    assert intake.tell("in/a.pdf") is Outcome.KNOWN


@pytest.mark.parametrize(
    ("bucket", "key"),
    [
        ("scans", "out/a.pdf"),
        ("other", "in/a.pdf"),
        (OWN, f"{keys.ROOT}1/source"),
        ("scans", "in"),
    ],
)
def test_what_lies_in_no_watched_place_is_left_alone(intake: Intake, bucket: str, key: str) -> None:
    intake.put(key, bucket=bucket)

    assert intake.tell(key, bucket=bucket) is Outcome.UNWATCHED
    assert intake.keys() == []


def test_what_is_our_own_is_left_alone_even_where_all_is_watched(intake: Intake) -> None:
    intake.watched = (WatchedPlace(bucket=OWN, tenant="archive"),)
    intake.put(f"{keys.ROOT}1/1/result.json", bucket=OWN)

    assert intake.tell(f"{keys.ROOT}1/1/result.json", bucket=OWN) is Outcome.UNWATCHED


def test_the_innermost_of_two_places_says_whose_document_it_is(intake: Intake) -> None:
    intake.watched = (
        *intake.watched,
        WatchedPlace(
            bucket="scans",
            prefix="in/acme/",
            tenant="acme",
            priority="interactive",
            options=OcrOptions(dpi=300),
        ),
    )
    intake.put("in/acme/a.pdf")

    intake.tell("in/acme/a.pdf")

    (row,) = documents_in(intake.database)
    assert (row.tenant, row.priority, row.options["dpi"]) == ("acme", "interactive", 300)


def test_an_upload_that_has_only_begun_is_no_object_yet(intake: Intake) -> None:
    assert intake.tell("in/a.pdf") is Outcome.GONE


def test_a_version_that_is_not_there_is_gone(intake: Intake) -> None:
    intake.put("in/a.pdf")

    assert intake.tell("in/a.pdf", version_id="v7") is Outcome.GONE


@pytest.mark.parametrize("key", ["in/a\0b", "in/\ud800", "in/" + "x" * 1_022, "in/" + "文" * 400])
def test_a_key_that_cannot_be_written_down_is_dropped(intake: Intake, key: str) -> None:
    assert intake.tell(key) is Outcome.UNUSABLE


@pytest.mark.parametrize(
    "said", [{"version_id": "\ud800"}, {"sequencer": "\ud800"}, {"sequencer": "\0"}]
)
def test_an_event_that_cannot_be_written_down_is_dropped(
    intake: Intake, said: dict[str, Any]
) -> None:
    intake.put("in/a.pdf")

    assert intake.tell("in/a.pdf", **said) is Outcome.UNUSABLE


def test_a_folder_is_no_document(intake: Intake) -> None:
    intake.put("in/folder/", b"")

    assert intake.tell("in/folder/") is Outcome.UNUSABLE


def test_an_empty_file_is_a_document_that_can_say_so(intake: Intake) -> None:
    intake.put("in/empty.pdf", b"")

    assert intake.tell("in/empty.pdf") is Outcome.ACCEPTED


def add_batch(intake: Intake, **values: Any) -> Batch:
    batch = Batch(**{"id": new_id(), "tenant": "archive", "name": "scans", **values})
    with intake.database.transaction() as session:
        batches.insert(session, batch)
    intake.watched = (
        WatchedPlace(bucket="scans", prefix="in/", tenant="archive", batch_id=batch.id),
    )
    intake.put("in/a.pdf")
    return batch


def test_a_place_may_have_a_batch_whose_options_hold(intake: Intake) -> None:
    batch = add_batch(intake, options={"dpi": 150})

    intake.tell("in/a.pdf")

    (row,) = documents_in(intake.database)
    assert (row.batch_id, row.options["dpi"]) == (batch.id, 150)


@pytest.mark.parametrize(
    ("values", "code"),
    [({"state": BatchState.CANCELLED}, "batch_closed"), ({"tenant": "acme"}, "unknown_batch")],
)
def test_a_batch_that_takes_nothing_leaves_the_event_undone(
    intake: Intake, values: dict[str, Any], code: str
) -> None:
    add_batch(intake, **values)

    with pytest.raises(ApiError, match=code):
        intake.tell("in/a.pdf")

    assert intake.keys() == []


def test_a_full_system_leaves_the_event_undone(intake: Intake) -> None:
    intake.put("in/a.pdf")
    intake.put("in/b.pdf")
    intake.max_pages = 1
    intake.tell("in/a.pdf")

    with pytest.raises(ApiError, match="system_full"):
        intake.tell("in/b.pdf")

    assert intake.keys() == ["in/a.pdf"]


def test_a_database_that_is_away_leaves_the_event_undone() -> None:
    nowhere = Intake(Database("postgresql://u@127.0.0.1:1/d"))
    nowhere.put("in/a.pdf")

    with pytest.raises(DatabaseUnavailableError):
        nowhere.tell("in/a.pdf")
