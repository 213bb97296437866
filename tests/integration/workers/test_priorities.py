"""Messages of two priorities through the real broker, taken as a worker takes them."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import redis
from celery import Celery
from kombu import Consumer
from kombu.message import Message

from db.ids import new_id
from db.states import Priority
from workers import dispatch
from workers.celeryconfig import RECOGNIZE_QUEUE, SPLIT_QUEUE
from workers.dispatch import ChunkMessage


def taken(
    broker: Celery, queue: str, count: int, *, after_one: Callable[[], None] = lambda: None
) -> list[Message]:
    """Take messages one at a time, each acknowledged before the next one comes."""
    messages: list[Message] = []

    def take(_body: object, message: Message) -> None:
        messages.append(message)
        message.ack()

    with broker.connection_for_read() as connection:
        queues = [broker.amqp.queues[queue]]
        with Consumer(connection, queues, callbacks=[take], prefetch_count=1, accept=["json"]):
            connection.drain_events(timeout=10)
            after_one()
            while len(messages) < count:
                connection.drain_events(timeout=10)
    return messages


def row_id(message: Message) -> UUID:
    (arguments, _, _) = json.loads(message.body)
    return UUID(arguments[0])


def test_an_interactive_document_overtakes_those_in_bulk(broker: Celery) -> None:
    in_bulk = [new_id() for _ in range(3)]
    interactive = new_id()
    for document_id in in_bulk:
        dispatch.send_split(document_id, priority=Priority.BULK)

    messages = taken(
        broker,
        SPLIT_QUEUE,
        4,
        after_one=lambda: dispatch.send_split(interactive, priority=Priority.INTERACTIVE),
    )

    order = [row_id(message) for message in messages]
    # A worker that waits has asked for the next message before the interactive one came.
    assert order.index(interactive) <= 2
    assert [document_id for document_id in order if document_id != interactive] == in_bulk


def test_the_chunks_of_a_document_and_its_assembly_have_its_priority(broker: Celery) -> None:
    chunk = ChunkMessage(new_id(), new_id(), 0, 4)

    dispatch.send_chord(chunk.document_id, 1, [chunk, chunk], priority=Priority.BULK)

    for message in taken(broker, RECOGNIZE_QUEUE, 2):
        (_, _, embedded) = json.loads(message.body)
        assert message.properties["priority"] == 5
        assert embedded["chord"]["options"]["priority"] == 5


def test_a_message_that_was_not_acknowledged_comes_back_with_its_priority(
    broker: Celery, redis_url: str
) -> None:
    dispatch.send_split(new_id(), priority=Priority.BULK)

    with broker.connection_for_read() as connection:
        received: list[Any] = []
        queues = [broker.amqp.queues[SPLIT_QUEUE]]
        with Consumer(connection, queues, on_message=received.append, accept=["json"]):
            connection.drain_events(timeout=10)
        received[0].requeue()

    with redis.Redis.from_url(redis_url) as client:
        assert client.llen(f"pagefleet:{SPLIT_QUEUE}:5") == 1
        assert client.llen(f"pagefleet:{SPLIT_QUEUE}") == 0
