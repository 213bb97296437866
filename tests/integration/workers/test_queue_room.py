"""Room in the real broker's queues, and who may take it."""

import threading
import time
from uuid import UUID

import pytest
import redis
from celery import Celery

from db.ids import new_id
from db.states import Priority
from workers import dispatch, queue_room
from workers.celeryconfig import ASSEMBLE_QUEUE, RECOGNIZE_QUEUE, SPLIT_QUEUE
from workers.dispatch import ChunkMessage, DispatchError

pytestmark = pytest.mark.usefixtures("broker")

LIMIT = 40


def send_splits(count: int, priority: Priority = Priority.BULK) -> None:
    for _ in range(count):
        dispatch.send_split(new_id(), priority=priority)


def draw(document_id: UUID, page_index: int, *, tenant: str = "a", limit: int = LIMIT) -> bool:
    return dispatch.send_drawing(document_id, page_index, tenant=tenant, limit=limit)


def room_for(
    wanted: int, priority: Priority = Priority.INTERACTIVE, queue: str = SPLIT_QUEUE
) -> int:
    with queue_room.reserved(queue, wanted, priority=priority, limit=LIMIT) as granted:
        return granted


def test_what_waits_is_counted_whatever_its_priority() -> None:
    send_splits(3, Priority.BULK)
    send_splits(2, Priority.INTERACTIVE)

    assert queue_room.waiting() == {"split": 5, "recognize": 0, "assemble": 0, "export": 0}


def test_a_queue_has_no_more_room_than_its_limit() -> None:
    send_splits(37)

    assert room_for(10) == 3


def test_bulk_leaves_a_quarter_of_a_queue_to_interactive_documents() -> None:
    send_splits(30)

    assert room_for(LIMIT, Priority.BULK) == 0
    assert room_for(LIMIT, Priority.INTERACTIVE) == 10


def test_half_of_the_assemblies_queue_is_left_to_chords() -> None:
    assert room_for(LIMIT, queue=ASSEMBLE_QUEUE) == LIMIT // 2


def test_room_is_taken_by_one_sender_alone() -> None:
    with queue_room.reserved(SPLIT_QUEUE, 30, priority=Priority.INTERACTIVE, limit=LIMIT):
        meanwhile = room_for(LIMIT)

    assert (meanwhile, room_for(LIMIT)) == (10, LIMIT)


def test_many_senders_at_once_take_no_more_than_there_is() -> None:
    together = threading.Barrier(8)
    granted: list[int] = []

    def take() -> None:
        with queue_room.reserved(
            SPLIT_QUEUE, 9, priority=Priority.INTERACTIVE, limit=LIMIT
        ) as count:
            granted.append(count)
            together.wait(timeout=20)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(granted) == LIMIT


def test_room_of_a_sender_that_died_comes_back(redis_url: str) -> None:
    with (
        redis.Redis.from_url(redis_url) as client,
        queue_room.reserved(SPLIT_QUEUE, 30, priority=Priority.INTERACTIVE, limit=LIMIT),
    ):
        (member,) = client.zrange("pagefleet:split.reserved", 0, -1)
        client.zadd("pagefleet:split.reserved", {member: 1})  # its time is long over

        assert room_for(LIMIT) == LIMIT


def test_a_chord_has_room_or_is_not_sent() -> None:
    with queue_room.place_for_chord(LIMIT // 2, limit=LIMIT) as fits:
        pass
    with queue_room.place_for_chord(LIMIT // 2 + 1, limit=LIMIT) as does_not_fit:
        pass

    assert (fits, does_not_fit) == (True, False)


def test_assemblies_that_chords_will_send_keep_the_next_chord_away() -> None:
    for _ in range(LIMIT // 2):
        dispatch.send_assembly(new_id(), 1, priority=Priority.INTERACTIVE)

    with queue_room.place_for_chord(1, limit=LIMIT) as has_place:
        pass

    assert not has_place


def test_an_assembly_without_room_is_left_to_the_sweep() -> None:
    for _ in range(LIMIT):
        dispatch.send_assembly_if_place(new_id(), 1, priority=Priority.INTERACTIVE, limit=LIMIT)

    assert queue_room.waiting()[ASSEMBLE_QUEUE] == LIMIT // 2


def test_what_a_worker_holds_takes_no_room(broker: Celery) -> None:
    for _ in range(2):
        dispatch.send_chunk(ChunkMessage(new_id(), new_id(), 0, 1), priority=Priority.BULK)
    with broker.connection_for_read() as connection:
        message = connection.default_channel.basic_get(RECOGNIZE_QUEUE)

        assert message is not None
        assert room_for(LIMIT, queue=RECOGNIZE_QUEUE) == LIMIT - 1


def test_a_broker_that_is_away_has_no_place(
    broker: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(broker.conf, "broker_url", "redis://127.0.0.1:9/0")

    with queue_room.place_for_chord(1, limit=LIMIT) as has_place:
        pass

    assert not has_place
    with pytest.raises(DispatchError), dispatch.place_for_split(limit=LIMIT):
        pass
    with pytest.raises(DispatchError):
        queue_room.waiting()


def test_an_image_is_asked_for_once_however_many_wait_for_it() -> None:
    document_id = new_id()

    answers = [draw(document_id, 0) for _ in range(3)]
    draw(document_id, 1)

    assert answers == [True] * 3
    assert queue_room.waiting()["split"] == 2


def test_no_image_is_asked_for_where_there_is_no_room() -> None:
    document_id = new_id()
    send_splits(LIMIT - 5)

    assert not draw(document_id, 0)

    assert queue_room.waiting()["split"] == LIMIT - 5
    assert draw(document_id, 0, limit=LIMIT + 8)


def test_images_of_one_tenant_leave_room_for_documents_and_for_images_of_others() -> None:
    answers = [draw(new_id(), 0, limit=256) for _ in range(300)]

    assert (answers.count(True), queue_room.waiting()["split"]) == (16, 16)
    with dispatch.place_for_split(limit=256) as has_place:
        assert has_place
    assert draw(new_id(), 0, tenant="another", limit=256)


def test_images_wait_behind_interactive_documents(redis_url: str) -> None:
    draw(new_id(), 0)
    send_splits(1, Priority.INTERACTIVE)

    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("pagefleet:split") == 1
        assert client.llen("pagefleet:split:5") == 1


def test_an_image_that_is_drawn_makes_room_for_the_next() -> None:
    first, second, third = new_id(), new_id(), new_id()
    answers = [draw(document_id, 0) for document_id in (first, second, third)]

    dispatch.end_drawing(first, 0)

    assert answers == [True, True, False]
    assert draw(third, 0)
    assert not draw(first, 0)


def test_an_image_whose_worker_died_is_asked_for_again_after_a_while(redis_url: str) -> None:
    document_id = new_id()
    draw(document_id, 0)
    with redis.Redis.from_url(redis_url) as client:
        client.hset("pagefleet:drawings.asked", f"{document_id}.1", "1700000000 a tenant")

    assert draw(document_id, 0)

    assert queue_room.waiting()["split"] == 2


def test_what_workers_hold_is_counted_with_the_age_of_the_oldest(redis_url: str) -> None:
    nobody = queue_room.unacked()
    now_s = time.time()
    with redis.Redis.from_url(redis_url) as client:
        client.zadd("pagefleet:unacked_index", {"old": now_s - 100, "new": now_s})

    held = queue_room.unacked()

    assert (nobody.messages, nobody.oldest_s) == (0, 0.0)
    assert held.messages == 2
    assert held.oldest_s == pytest.approx(100, abs=20)
