"""Rounds of the sweep on a real database and a real broker, whose messages a test takes away."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import pytest
import redis
import structlog
from celery import Celery
from sqlalchemy import text
from sqlalchemy.orm import Session

from db import documents, outbox
from db.outbox import DueWork, Work
from tests.support.backlog import add_bulk
from tests.support.engines import NumberingEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.rows import DUE_NOW_S, add_document, add_recognizing_document
from workers import queue_room
from workers.celeryconfig import ASSEMBLE_QUEUE, QUEUES, RECOGNIZE_QUEUE, SPLIT_QUEUE
from workers.recover_stalled import Memory, Round, recover_stalled, sweep_until

LIMIT = 40


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    pipeline.rules = replace(pipeline.rules, queue_limit=LIMIT)
    return pipeline


@contextmanager
def memory_full(redis_url: str) -> Iterator[None]:
    """Let the broker refuse what needs memory, as one does that is full and evicts nothing."""
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory", 1)
        try:
            yield
        finally:
            client.config_set("maxmemory", 0)


@contextmanager
def messages_refused(redis_url: str) -> Iterator[None]:
    """Let the broker answer whatever it is asked, and take no message."""
    with redis.Redis.from_url(redis_url) as client:
        client.execute_command("ACL", "SETUSER", "default", "-lpush")
        try:
            yield
        finally:
            client.execute_command("ACL", "SETUSER", "default", "+@all")


def sweep(pipeline: Pipeline, memory: Memory | None = None) -> Round:
    return recover_stalled(
        transaction=pipeline.database.transaction, rules=pipeline.rules, limit=100, memory=memory
    )


def take_all(broker: Celery, queue: str) -> list[UUID]:
    """Take the messages of a queue as a worker would; return the rows they speak of."""
    found = []
    with broker.connection_for_read() as connection:
        channel = connection.default_channel
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            found.append(UUID(json.loads(message.body)[0][0]))
    return found


def rows_due(pipeline: Pipeline, table: str) -> int:
    with pipeline.database.transaction() as session:
        count = session.scalar(
            text(f"SELECT count(*) FROM {table} WHERE dispatch_after <= now()")  # noqa: S608 - ours
        )
    return count or 0


def test_the_queue_stays_short_while_thousands_of_documents_wait(
    pipeline: Pipeline, broker: Celery
) -> None:
    with pipeline.database.transaction() as session:
        for tenant in ("a", "b"):
            add_bulk(session, tenant=tenant, count=2_500)
    memory = Memory()
    lengths = []
    taken: set[UUID] = set()

    for _ in range(10):
        sweep(pipeline, memory)
        sweep(pipeline, memory)  # a second one finds no room
        lengths.append(sum(queue_room.waiting().values()))
        taken.update(take_all(broker, SPLIT_QUEUE))

    assert lengths == [LIMIT * 3 // 4] * 10
    assert len(taken) == sum(lengths)


def test_sweeps_at_once_fill_the_queue_to_its_limit_and_send_nothing_twice(
    pipeline: Pipeline, broker: Celery
) -> None:
    with pipeline.database.transaction() as session:
        add_bulk(session, tenant="a", count=200)
    together = threading.Barrier(3)

    def run() -> None:
        together.wait(timeout=20)
        sweep(pipeline)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sweep(pipeline)

    sent = take_all(broker, SPLIT_QUEUE)
    assert (len(sent), len(set(sent))) == (LIMIT * 3 // 4, LIMIT * 3 // 4)
    assert rows_due(pipeline, "documents") == 200 - LIMIT * 3 // 4


def test_what_another_sweep_held_for_a_moment_is_due_again_all_the_same(
    pipeline: Pipeline, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pipeline.database.transaction() as session:
        add_bulk(session, tenant="a", count=20)
    put_back = outbox.put_back_unsent
    left: list[int] = []

    def held_at_first(session: Session, unsent: Sequence[DueWork]) -> list[DueWork]:
        with pipeline.database.transaction() as other:
            if not left:
                other.execute(text("SELECT FROM documents LIMIT 15 FOR NO KEY UPDATE"))
            still = put_back(session, unsent)
        left.append(len(still))
        return still

    monkeypatch.setattr(outbox, "put_back_unsent", held_at_first)

    with messages_refused(redis_url):
        sweep(pipeline)

    assert left == [15, 0]
    assert rows_due(pipeline, "documents") == 20


def test_an_interactive_document_is_sent_though_bulk_has_filled_its_part(
    pipeline: Pipeline, broker: Celery
) -> None:
    with pipeline.database.transaction() as session:
        add_bulk(session, tenant="a", count=100)
    sweep(pipeline)
    with pipeline.database.transaction() as session:
        interactive = add_document(session, dispatch_after_s=DUE_NOW_S)

    sweep(pipeline)

    assert take_all(broker, SPLIT_QUEUE)[0] == interactive


def test_later_steps_go_first(pipeline: Pipeline) -> None:
    with pipeline.database.transaction() as session:
        for _ in range(60):
            add_recognizing_document(session, priority="bulk", page_count=1, chord_grace_s=None)
        add_bulk(session, tenant="archive", count=100)
        document_id, _ = add_recognizing_document(session, priority="bulk", page_count=1)
        session.execute(
            text("UPDATE documents SET dispatch_after = now() WHERE id = :id"),
            {"id": document_id},
        )

    done = sweep(pipeline)

    assert done.sent == {Work.ASSEMBLE: 1, Work.RECOGNIZE: 30, Work.SPLIT: 30, Work.EXPORT: 0}
    assert done.is_busy


def test_a_split_waits_while_its_lane_has_chunks_to_send(pipeline: Pipeline) -> None:
    with pipeline.database.transaction() as session:
        for _ in range(60):
            add_recognizing_document(session, priority="bulk", page_count=1, chord_grace_s=None)
        add_document(session, priority="bulk", dispatch_after_s=DUE_NOW_S)

    done = sweep(pipeline)

    assert done.sent == {Work.ASSEMBLE: 0, Work.RECOGNIZE: 30, Work.SPLIT: 0, Work.EXPORT: 0}


def test_an_idle_round_says_so(pipeline: Pipeline) -> None:
    assert not sweep(pipeline).is_busy


def test_what_a_full_broker_refuses_is_due_as_before(
    pipeline: Pipeline, broker: Celery, redis_url: str
) -> None:
    with pipeline.database.transaction() as session:
        document_id = add_document(session, priority="bulk", dispatch_after_s=DUE_NOW_S)
        before = documents.get(session, document_id).dispatch_after

    with memory_full(redis_url):
        refused = sweep(pipeline)
    after = pipeline.document(document_id)
    sent = sweep(pipeline)

    assert (sum(refused.sent.values()), refused.is_busy) == (0, False)
    assert (after.dispatch_after, after.deliveries) == (before, 0)
    assert sent.sent[Work.SPLIT] == 1
    assert take_all(broker, SPLIT_QUEUE) == [document_id]


def test_a_broker_that_is_away_ends_the_round(
    pipeline: Pipeline, broker: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pipeline.database.transaction() as session:
        add_document(session, priority="bulk", dispatch_after_s=DUE_NOW_S)
    monkeypatch.setitem(broker.conf, "broker_url", "redis://127.0.0.1:9/0")

    done = sweep(pipeline)

    assert (sum(done.sent.values()), done.is_busy) == (0, False)
    assert rows_due(pipeline, "documents") == 1


def test_a_round_that_the_database_refuses_is_not_the_last(
    pipeline: Pipeline, broker: Celery
) -> None:
    with pipeline.database.transaction() as session:
        document_id = add_document(session, priority="bulk", dispatch_after_s=DUE_NOW_S)
        session.execute(text("ALTER TABLE exports RENAME TO away"))
    stop = threading.Event()

    def repair() -> None:
        with pipeline.database.transaction() as session:
            session.execute(text("ALTER TABLE away RENAME TO exports"))

    after_rounds = iter([repair, stop.set])

    def after_round() -> None:
        next(after_rounds)()

    with structlog.testing.capture_logs() as logged:
        sweep_until(
            stop,
            transaction=pipeline.database.transaction,
            rules=pipeline.rules,
            limit=100,
            busy_interval_s=0,
            idle_interval_s=0,
            after_round=after_round,
        )

    assert [line["event"] for line in logged] == ["round broken off", "round"]
    assert take_all(broker, SPLIT_QUEUE) == [document_id]


def test_what_used_up_its_attempts_is_given_up_though_the_queue_is_full(
    pipeline: Pipeline,
) -> None:
    with pipeline.database.transaction() as session:
        add_bulk(session, tenant="archive", count=100)
    sweep(pipeline)
    with pipeline.database.transaction() as session:
        document_id = add_document(session, priority="bulk", dispatch_after_s=DUE_NOW_S)
        session.execute(
            text("UPDATE documents SET attempt = :most WHERE id = :id"),
            {"most": pipeline.rules.max_attempts, "id": document_id},
        )

    done = sweep(pipeline)

    assert (done.given_up, done.sent[Work.SPLIT]) == (1, 0)
    assert pipeline.document(document_id).state == "failed"


def test_a_document_with_room_for_all_its_chunks_goes_as_a_chord(
    pipeline: Pipeline, broker: Celery
) -> None:
    document_id = pipeline.accept(tiff_of(8))

    pipeline.split(document_id)

    assert pipeline.document(document_id).by_chord
    assert take_all(broker, RECOGNIZE_QUEUE) == pipeline.chunk_ids(document_id)


def test_a_document_of_more_chunks_than_there_is_room_for_sends_none(
    pipeline: Pipeline, broker: Celery
) -> None:
    pipeline.chunk_pages = 1
    document_id = pipeline.accept(tiff_of(LIMIT // 2 + 1))

    pipeline.split(document_id)

    assert not pipeline.document(document_id).by_chord
    assert take_all(broker, RECOGNIZE_QUEUE) == []
    assert rows_due(pipeline, "chunks") == LIMIT // 2 + 1


def test_a_document_without_a_chord_finishes_by_messages_alone(
    pipeline: Pipeline, broker: Celery
) -> None:
    pipeline.chunk_pages = 1
    pipeline.engine = NumberingEngine()
    document_id = pipeline.accept(tiff_of(LIMIT + 5))
    pipeline.split(document_id)
    memory = Memory()
    longest = 0

    while not take_all(broker, ASSEMBLE_QUEUE):
        sweep(pipeline, memory)
        longest = max(longest, *queue_room.waiting().values())
        for chunk_id in take_all(broker, RECOGNIZE_QUEUE):
            pipeline.recognize(chunk_id)

    assert pipeline.assemble(document_id) == "succeeded"
    assert longest <= LIMIT


def test_a_split_while_the_broker_is_away_leaves_all_to_the_sweep(
    pipeline: Pipeline, broker: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = pipeline.accept(tiff_of(4))
    monkeypatch.setitem(broker.conf, "broker_url", "redis://127.0.0.1:9/0")

    pages = pipeline.split(document_id)

    assert pages == 4
    assert rows_due(pipeline, "chunks") == 2


def test_a_split_while_the_broker_is_full_leaves_all_to_the_sweep(
    pipeline: Pipeline, redis_url: str
) -> None:
    document_id = pipeline.accept(tiff_of(4))

    with memory_full(redis_url):
        pages = pipeline.split(document_id)

    assert pages == 4
    assert not pipeline.document(document_id).by_chord
    assert rows_due(pipeline, "chunks") == 2


def test_a_chord_that_is_refused_leaves_its_chunks_to_the_sweep(
    pipeline: Pipeline, redis_url: str
) -> None:
    document_id = pipeline.accept(tiff_of(4))

    with messages_refused(redis_url):
        pages = pipeline.split(document_id)

    assert pages == 4
    assert not pipeline.document(document_id).by_chord
    assert rows_due(pipeline, "chunks") == 2


@pytest.mark.parametrize("queue", QUEUES)
def test_nothing_is_left_of_a_reservation(pipeline: Pipeline, redis_url: str, queue: str) -> None:
    document_id = pipeline.accept(tiff_of(4))
    pipeline.split(document_id)
    sweep(pipeline)

    with redis.Redis.from_url(redis_url) as client:
        assert client.zcard(f"pagefleet:{queue}.reserved") == 0
