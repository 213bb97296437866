"""What is open and what a key has used, counted on a real database."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text, update

from db import admission, api_keys, documents
from db.admission import KeyUse, OpenWork
from db.engine import Database, Session
from db.ids import new_id
from db.key_models import KeyUsage
from db.models import Document
from db.planned_chunks import PlannedChunk
from db.states import OPEN_DOCUMENT_STATES, DocumentState, Priority
from tests.support.plans import plan_of
from tests.support.rows import (
    TENANT,
    add_document,
    add_recognizing_document,
    claim_split,
    make_document,
)

WHOLE_PAGES = 3
PIXELS = 3_870_000


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, pool_size=4)
    yield database
    database.dispose()


def make_key(database: Database, **quotas: int) -> str:
    with database.transaction() as session:
        key = api_keys.create(session, tenant=TENANT, name="scanner", **quotas)
    return api_keys.id_of(key)


def send(session: Session, key_id: str, **values: Any) -> tuple[Document, KeyUse]:
    document = make_document(key_id=key_id, **values)
    documents.insert(session, document, dispatch_after_s=60)
    return document, admission.charge(session, document)


def split(session: Session, document: Document, *, page_count: int) -> None:
    documents.start_recognizing(
        session,
        claim_split(session, document.id),
        page_count=page_count,
        chunks=[PlannedChunk(new_id(), 0, page_count)],
        chord_grace_s=60,
    )


def use_of(database: Database, key_id: str) -> KeyUse:
    with database.transaction() as session:
        return admission.key_use(session, tenant=TENANT, key_id=key_id)


def test_open_documents_are_counted_by_priority(database: Database) -> None:
    with database.transaction() as session:
        add_document(session, priority="bulk", page_estimate=7, pixel_estimate=70)
        add_document(session, priority="bulk", page_estimate=2, pixel_estimate=20)
        add_document(session, state="succeeded", page_estimate=100)

    with database.transaction() as session:
        counted = admission.open_work(session)

    assert counted[Priority.INTERACTIVE] == OpenWork()
    bulk = counted[Priority.BULK]
    assert (bulk.documents, bulk.pages, bulk.pixels) == (2, 9, 90)
    assert bulk.oldest_s is not None
    assert bulk.oldest_s >= 0


def test_a_split_sets_pages_and_pixels_right(database: Database) -> None:
    with database.transaction() as session:
        add_recognizing_document(
            session, page_count=WHOLE_PAGES, page_estimate=12, pixel_estimate=12 * PIXELS
        )

    with database.transaction() as session:
        counted = admission.open_work(session)[Priority.INTERACTIVE]

    assert (counted.pages, counted.pixels) == (WHOLE_PAGES, WHOLE_PAGES * PIXELS)


def test_pages_in_flight_are_those_of_running_chunks(database: Database) -> None:
    with database.transaction() as session:
        _, (first, _) = add_recognizing_document(session, page_count=3, chunk_pages=2)
        session.execute(
            text("UPDATE chunks SET state = 'running' WHERE id = :id"), {"id": first.id}
        )

        assert admission.pages_in_flight(session) == 2


def test_pages_of_documents_that_ended_lately_are_finished(database: Database) -> None:
    now = datetime.now(UTC)
    with database.transaction() as session:
        for ago_s, pages in ((10, 5), (200, 6), (1_000, 700)):
            finished_at = now - timedelta(seconds=ago_s)
            add_document(session, state="succeeded", page_estimate=pages, finished_at=finished_at)

        assert admission.pages_finished(session, window_s=300) == 11


def test_what_a_key_sends_is_counted_to_its_day(database: Database) -> None:
    key_id = make_key(database, max_open_pages=100, max_pages_per_day=1_000)

    with database.transaction() as session:
        _, first = send(session, key_id, page_estimate=7)
    with database.transaction() as session:
        _, second = send(session, key_id, page_estimate=2)

    assert (first.open_pages, first.pages_today, first.documents_today) == (0, 0, 0)
    assert (second.open_pages, second.pages_today, second.documents_today) == (7, 7, 1)
    assert use_of(database, key_id) == KeyUse(100, 1_000, 9, 9, 2)


def test_what_is_rolled_back_is_not_counted(database: Database) -> None:
    key_id = make_key(database, max_pages_per_day=1)

    def add_in_vain() -> None:
        with database.transaction() as session:
            send(session, key_id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        add_in_vain()

    assert use_of(database, key_id).pages_today == 0


def test_of_many_uploads_at_once_only_one_sees_a_quota_of_one_page_unused(
    database: Database,
) -> None:
    key_id = make_key(database, max_open_pages=1, max_pages_per_day=1)
    together = Barrier(4)

    def upload(_: int) -> bool:
        with database.transaction() as session:
            document = make_document(key_id=key_id)
            documents.insert(session, document, dispatch_after_s=60)
            together.wait(timeout=30)
            use = admission.charge(session, document)
            is_admitted = not (use.has_used_up_today or use.has_used_up_open)
            if not is_admitted:
                session.rollback()
        return is_admitted

    with ThreadPoolExecutor(4) as threads:
        admitted = list(threads.map(upload, range(4)))

    assert admitted.count(True) == 1
    assert use_of(database, key_id) == KeyUse(1, 1, 1, 1, 1)


def test_a_document_that_is_larger_than_guessed_takes_its_key_over_the_quota(
    database: Database,
) -> None:
    key_id = make_key(database, max_pages_per_day=10)
    with database.transaction() as session:
        document, _ = send(session, key_id, page_estimate=2)
    with database.transaction() as session:
        split(session, document, page_count=30)

    use = use_of(database, key_id)

    assert use.pages_today == 30
    assert use.has_used_up_today


def test_a_document_that_is_smaller_than_guessed_gives_pages_back(database: Database) -> None:
    key_id = make_key(database, max_open_pages=100, max_pages_per_day=100)
    with database.transaction() as session:
        document, _ = send(session, key_id, page_estimate=90)
    with database.transaction() as session:
        split(session, document, page_count=3)

    assert use_of(database, key_id) == KeyUse(100, 100, 3, 3, 1)


def test_the_day_of_a_document_is_the_one_it_was_sent_on(database: Database) -> None:
    key_id = make_key(database, max_pages_per_day=100)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with database.transaction() as session:
        document, _ = send(session, key_id)
        session.execute(
            update(KeyUsage).where(KeyUsage.key_id == key_id).values(day=yesterday.date())
        )
        session.execute(
            update(Document).where(Document.id == document.id).values(created_at=yesterday)
        )
    with database.transaction() as session:
        split(session, document, page_count=30)

    with database.transaction() as session:
        counted = session.execute(select(KeyUsage.day, KeyUsage.pages)).all()
    assert counted == [(yesterday.date(), 30)]
    assert use_of(database, key_id).pages_today == 0


def test_a_key_that_is_gone_has_no_quota(database: Database) -> None:
    with database.transaction() as session:
        _, use = send(session, "gone")

    assert use == KeyUse()
    assert use_of(database, "gone") == KeyUse()


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["send", "split", "end"]),
            st.integers(1, 40),
            st.sampled_from(list(Priority)),
        ),
        max_size=20,
    )
)
@settings(
    max_examples=15,
    deadline=None,
    # Examples leave rows behind, of a key of their own: what is compared is the same rows.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_sum_over_open_documents_is_what_the_counter_says(
    database: Database, steps: list[tuple[str, int, Priority]]
) -> None:
    key_id = make_key(database, max_open_pages=1_000)
    queued: list[Document] = []
    split_pages = 0
    with database.transaction() as session:
        for step, pages, priority in steps:
            if step == "send":
                document, _ = send(
                    session, key_id, page_estimate=pages, pixel_estimate=pages, priority=priority
                )
                queued.append(document)
            elif step == "split" and queued:
                split(session, document := queued.pop(), page_count=pages)
                split_pages += pages
            elif queued:
                split_pages += queued[-1].page_estimate
                documents.move(
                    session,
                    queued.pop().id,
                    source=DocumentState.QUEUED,
                    target=DocumentState.CANCELLED,
                )
        counted = admission.open_work(session)
        summed = dict(
            session.execute(
                select(Document.priority, func.sum(Document.page_estimate))
                .where(Document.state.in_(sorted(OPEN_DOCUMENT_STATES)))
                .group_by(Document.priority)
            ).all()
        )
        use = admission.key_use(session, tenant=TENANT, key_id=key_id)
        of_key = select(func.coalesce(func.sum(Document.page_estimate), 0)).where(
            Document.key_id == key_id
        )
        still_open = of_key.where(Document.state.in_(sorted(OPEN_DOCUMENT_STATES)))
        assert use.pages_today == session.scalar(of_key)
        assert use.open_pages == session.scalar(still_open)

    assert {each: counted[each].pages for each in Priority if counted[each].pages} == summed
    assert use.pages_today == split_pages + sum(document.page_estimate for document in queued)


def test_open_work_is_counted_from_an_index_alone(database: Database) -> None:
    with database.transaction() as session:
        # A table that is almost empty would be read whole.
        session.execute(text("SET LOCAL enable_seqscan = off"))
        session.execute(text("SET LOCAL enable_bitmapscan = off"))
        plan = plan_of(session, lambda: admission.open_work(session))

    assert "Index Only Scan using ix_documents_open" in plan
