"""How many messages may wait in a queue: Redis holds what workers take soon, Postgres the rest.

Whoever sends takes room first, in one step on the server, so that no two senders take the same
room; the messages that come of it fill it. Room that a dead sender took comes back by itself.

Only messages that wait are counted. What workers hold (``unacked``, all queues together) is as
many as they have slots, and would make a fleet of many slots find its queues full for ever.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from uuid import uuid4

import structlog

from db.states import Priority
from workers import broker
from workers.asked_drawings import most_drawings
from workers.broker import DispatchError
from workers.celeryconfig import (
    ASSEMBLE_QUEUE,
    EXPORT_QUEUE,
    QUEUES,
    RECOGNIZE_QUEUE,
    SPLIT_QUEUE,
    queue_list,
)

log = structlog.get_logger(__name__)

# The longest that a sender needs between asking and having sent, by far.
RESERVATION_S = 60
_SHARE_OF_EXPORTS = 8
_FEWEST_EXPORTS = 4  # of which bulk may have three

# The first write is one that a server without memory refuses: it would let pass what comes later.
# KEYS: reservations of the queue, what workers hold, then the lists that count.
# ARGV: most messages, how many are wanted, fewest that are of use, whether what workers hold
# counts (0 or 1), name of the reservation, seconds until it ends.
_RESERVE = """
local now = tonumber(redis.call('TIME')[1])
local taken = redis.call('HLEN', KEYS[2]) * ARGV[4]
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], now, '+inf')) do
  taken = taken + tonumber(string.match(member, '^%d+'))
end
for index = 3, #KEYS do
  taken = taken + redis.call('LLEN', KEYS[index])
end
local granted = math.min(ARGV[1] - taken, tonumber(ARGV[2]))
if granted < tonumber(ARGV[3]) then
  return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[6], granted .. ':' .. ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
redis.call('EXPIRE', KEYS[1], ARGV[6])
return granted
"""

# KEYS: when each message that is held was delivered, as the transport notes it.
_UNACKED = """
return {redis.call('ZCARD', KEYS[1]), redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or ''}
"""


def most_waiting(queue: str, priority: Priority, *, limit: int) -> int:
    """Return up to how many messages a queue is filled with documents of this priority.

    Bulk leaves a quarter free, so that an interactive document finds room at any time. Of the
    queue of assemblies half is left for those that chords send by themselves. Of exports, which may
    take minutes, few wait here: whose turn it is, is minded where they are sent.
    """
    most = limit
    if queue == ASSEMBLE_QUEUE:
        most = limit // 2
    elif queue == EXPORT_QUEUE:
        most = max(limit // _SHARE_OF_EXPORTS, _FEWEST_EXPORTS)
    return most if priority is Priority.INTERACTIVE else most * 3 // 4


def waiting() -> Mapping[str, int]:
    """Return how many messages wait in each queue, whatever their priority.

    Raises:
        DispatchError: the broker does not answer.
    """
    with broker.redis_client() as client:
        pipeline = client.pipeline(transaction=False)
        for queue in QUEUES:
            for priority in Priority:
                pipeline.llen(queue_list(queue, priority))
        lengths = iter(pipeline.execute())
    return {queue: sum(next(lengths) for _ in Priority) for queue in QUEUES}


@dataclass(frozen=True, slots=True)
class Unacked:
    """What workers hold: how many messages, and the oldest's age; 0.0 without any."""

    messages: int
    oldest_s: float


def unacked() -> Unacked:
    """Return what workers hold of all queues together.

    Raises:
        DispatchError: the broker does not answer.
    """
    with broker.redis_client() as client:
        held, oldest_at_s = client.eval(_UNACKED, 1, broker.key("unacked_index"))
    if not held:
        return Unacked(0, 0.0)
    return Unacked(int(held), max(0.0, time.time() - float(oldest_at_s)))


@contextmanager
def reserved(queue: str, wanted: int, *, priority: Priority, limit: int) -> Iterator[int]:
    """Take room for up to ``wanted`` messages; yields for how many there is some, maybe none.

    Raises:
        DispatchError: the broker does not answer, or refuses.
    """
    most = most_waiting(queue, priority, limit=limit)
    with _reservation(queue, [queue], most=most, wanted=wanted, fewest=1) as granted:
        yield granted


@contextmanager
def place_for_one(queue: str, *, priority: Priority, limit: int) -> Iterator[bool]:
    """Take room for one message; yields whether there is some.

    Raises:
        DispatchError: the broker does not answer, or refuses.
    """
    with reserved(queue, 1, priority=priority, limit=limit) as granted:
        yield granted == 1


@contextmanager
def place_for_chord(chunk_count: int, *, limit: int) -> Iterator[bool]:
    """Take room for all chunks of a document as one chord; yields whether there is some.

    A chord sends its assembly unasked. So what waits or runs, and may still be part of one, has to
    fit into the half of the assemblies' queue that no other sender fills. A broker that is away
    has no room.
    """
    with ExitStack() as stack:
        try:
            granted = stack.enter_context(
                _reservation(
                    RECOGNIZE_QUEUE,
                    [RECOGNIZE_QUEUE, ASSEMBLE_QUEUE],
                    most=limit // 2,
                    wanted=chunk_count,
                    fewest=chunk_count,
                    counts_held=True,
                )
            )
        except DispatchError:
            log.warning("chord not tried, the broker is not reachable")
            granted = 0
        yield granted == chunk_count


@contextmanager
def place_for_drawing(*, limit: int) -> Iterator[bool]:
    """Take room for the message about one page image; yields whether there is some.

    An eighth of the queue is left to documents, however many images wait.

    Raises:
        DispatchError: the broker does not answer, or refuses.
    """
    most = limit - most_drawings(limit=limit)
    with _reservation(SPLIT_QUEUE, [SPLIT_QUEUE], most=most, wanted=1, fewest=1) as granted:
        yield granted == 1


@contextmanager
def _reservation(
    queue: str,
    counted: Iterable[str],
    *,
    most: int,
    wanted: int,
    fewest: int,
    counts_held: bool = False,
) -> Iterator[int]:
    reservations = f"{queue}.reserved"
    lists = [queue_list(name, priority) for name in counted for priority in Priority]
    # The transport's client puts its prefix before the keys of simple commands only.
    keys = [broker.key(name) for name in (reservations, "unacked", *lists)]
    name = uuid4().hex
    arguments = [most, wanted, fewest, int(counts_held), name, RESERVATION_S]
    with broker.redis_client() as client:
        granted = int(client.eval(_RESERVE, len(keys), *keys, *arguments))
    try:
        yield granted
    finally:
        if granted:
            # Not given back it ends by itself.
            with suppress(DispatchError), broker.redis_client() as client:
                client.zrem(reservations, f"{granted}:{name}")
