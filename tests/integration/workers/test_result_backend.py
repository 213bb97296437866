"""What is sent leaves nothing behind that waits for results, in this process or in Redis."""

import pytest
import redis
from celery import Celery

from db.ids import new_id
from db.states import Priority
from workers import dispatch
from workers.dispatch import ChunkMessage

DOCUMENTS = 5


@pytest.mark.parametrize("chunk_count", [1, 3])
def test_nobody_waits_for_the_results_of_a_chord(
    broker: Celery, redis_url: str, chunk_count: int
) -> None:
    for _ in range(DOCUMENTS):
        document_id = new_id()
        chunks = [
            ChunkMessage(new_id(), document_id, page, page + 1) for page in range(chunk_count)
        ]
        dispatch.send_chord(document_id, 1, chunks, priority=Priority.BULK)

    concrete, weak = broker.backend._pending_results
    with redis.Redis.from_url(redis_url) as client:
        assert client.pubsub_channels() == []
    assert (len(concrete), len(weak)) == (0, 0)
