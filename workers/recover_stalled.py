"""Dispatch what is due: the database is the truth, messages and chords only the fast path.

New work and work that stands still are the same here: rows whose ``dispatch_after`` has passed.
Each round fills the queues up to their limit. A process of its own (``pagefleet reconcile``): a
message that would start it could be lost too. Two may run at once.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from db import outbox
from db.engine import Transaction
from db.errors import DatabaseError, DatabaseUnavailableError
from db.outbox import DueWork, Turns, Work
from db.states import Priority
from workers import dispatch, queue_room
from workers.cancel_batches import cancel_batches
from workers.celeryconfig import ASSEMBLE_QUEUE, EXPORT_QUEUE, RECOGNIZE_QUEUE, SPLIT_QUEUE
from workers.dispatch import ChunkMessage, DispatchError
from workers.end_spent import end_spent
from workers.retry_batches import retry_batches
from workers.sweep_metrics import count_given_up, count_round, count_sent, note_broker
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)

# Later steps first, so that documents finish instead of all being half done; a split waits for
# what this round has left of its lane's chunks.
_QUEUES: Mapping[Work, str] = {
    Work.ASSEMBLE: ASSEMBLE_QUEUE,
    Work.RECOGNIZE: RECOGNIZE_QUEUE,
    Work.SPLIT: SPLIT_QUEUE,
    Work.EXPORT: EXPORT_QUEUE,
}
# Before each try. Another sweep that looks for due rows holds them for milliseconds.
_PUT_BACK_PAUSES_S = (0.0, 0.05, 0.2, 0.5)


class Memory:
    """Whose turn it was, for each kind of work and priority."""

    def __init__(self) -> None:
        self.turns: defaultdict[tuple[Work, Priority], Turns] = defaultdict(Turns)


@dataclass(slots=True)
class Round:
    """What one round did.

    Attributes:
        sent: messages by kind.
        given_up: documents and isolated pages that had used up their attempts.
        isolated: chunks that had, and whose pages are tried one by one now.
        waiting: messages in each queue before the round.
        left: rows that wait on, as far as they were counted.
        is_busy: whether there may be more to do at once: something was sent, or a queue is full.
        is_broken_off: whether the broker ended it.
    """

    sent: dict[Work, int] = field(default_factory=lambda: dict.fromkeys(Work, 0))
    given_up: int = 0
    isolated: int = 0
    waiting: Mapping[str, int] = field(default_factory=dict)
    left: int = 0
    is_busy: bool = False
    is_broken_off: bool = False


def recover_stalled(
    *, transaction: Transaction, rules: WorkRules, limit: int, memory: Memory | None = None
) -> Round:
    """End cancelled batches, start over retried ones, end what is spent, and send what is due.

    It is sent while the queues have room.

    A row is marked before its message is sent: dying in between costs one back-off, while the
    other order could send the same row in every round. A broker that is away, or has no memory
    left, ends the round; what it did not take is due as before.

    Args:
        transaction: opens a transaction.
        rules: the delays, and the most messages in a queue.
        limit: most rows of one kind that one round ends.
        memory: whose turn it was in the rounds before.
    """
    has_batches_left = cancel_batches(transaction=transaction)
    has_batches_left |= retry_batches(transaction=transaction)
    ended = end_spent(transaction=transaction, rules=rules, limit=limit)
    done = Round(given_up=ended.given_up, isolated=ended.isolated)
    count_given_up(documents_and_pages=ended.given_up, chunks=ended.isolated)
    turns = (memory or Memory()).turns
    try:
        done.waiting = queue_room.waiting()
        held = queue_room.unacked()
        note_broker(done.waiting, unacked=held.messages, unacked_oldest_s=held.oldest_s)
        for work in _QUEUES:
            for priority in Priority:
                _send_due(
                    work,
                    priority,
                    done,
                    turns=turns[work, priority],
                    transaction=transaction,
                    rules=rules,
                )
    except DispatchError:
        # The next step would wait for the same time-out.
        log.warning("round ended, the broker is not reachable or refuses")
        done.is_busy = False
        done.is_broken_off = True
    done.is_busy |= has_batches_left
    if done.given_up or done.isolated or any(done.sent.values()):
        sent = {work.value: count for work, count in done.sent.items()}
        log.info(
            "round",
            **sent,
            given_up=done.given_up,
            isolated=done.isolated,
            depth=done.waiting,
            waiting=done.left,
        )
    return done


def sweep_until(
    stop: threading.Event,
    *,
    transaction: Transaction,
    rules: WorkRules,
    limit: int,
    busy_interval_s: float,
    idle_interval_s: float,
    after_round: Callable[[], None] = lambda: None,
) -> None:
    """Do round after round until ``stop`` is set, whatever the database says in one of them.

    ``after_round`` is called even after one that found no server: trying is all that can be done.
    """
    memory = Memory()
    while not stop.is_set():
        try:
            done = recover_stalled(transaction=transaction, rules=rules, limit=limit, memory=memory)
            count_round("broker_away" if done.is_broken_off else "done")
        except DatabaseUnavailableError:
            count_round("database_away")
            log.warning("round skipped, the database is not reachable")
            done = Round()
        except DatabaseError:
            # One row that cannot be changed must not stop what all the others wait for.
            count_round("refused")
            log.exception("round broken off")
            done = Round()
        after_round()
        stop.wait(busy_interval_s if done.is_busy else idle_interval_s)


def _send_due(
    work: Work,
    priority: Priority,
    done: Round,
    *,
    turns: Turns,
    transaction: Transaction,
    rules: WorkRules,
) -> None:
    """Fill one queue with documents of one priority, and add what was done to ``done``.

    Raises:
        DispatchError: the broker does not answer, or refuses; what it did not take is due again.
    """
    queue = _QUEUES[work]
    most = queue_room.most_waiting(queue, priority, limit=rules.queue_limit)
    room = most - done.waiting[queue] - done.sent[work]
    if room <= 0:
        done.is_busy = True
        return
    with transaction() as session:
        taken = outbox.take_due(
            session, work, priority, turns=turns, room=room, backoff_s=rules.dispatch_grace_s
        )
    done.left += taken.left
    if not taken.due:
        return
    done.is_busy = True
    sent = 0
    try:
        # Asked again for what it is: others send meanwhile.
        with queue_room.reserved(
            queue, len(taken.due), priority=priority, limit=rules.queue_limit
        ) as granted:
            for each in taken.due[:granted]:
                _send(each)
                sent += 1
    finally:
        done.sent[work] += sent
        count_sent(work, sent)
        _put_back(taken.due[sent:], transaction)


def _put_back(unsent: Sequence[DueWork], transaction: Transaction) -> None:
    """Undo the marks; rows that are held, by other sweeps in most cases, are tried again soon.

    Those that are held even then were claimed, or wait until their grace has passed.
    """
    for pause_s in _PUT_BACK_PAUSES_S:
        if not unsent:
            return
        threading.Event().wait(pause_s)
        with transaction() as session:
            unsent = outbox.put_back_unsent(session, unsent)


def _send(work: DueWork) -> None:
    if work.work is Work.SPLIT:
        dispatch.send_split(work.id, priority=work.priority)
    elif work.work is Work.ASSEMBLE:
        dispatch.send_assembly(work.id, work.generation, priority=work.priority)
    elif work.work is Work.EXPORT:
        dispatch.send_export(work.id, work.document_id, priority=work.priority)
    else:
        dispatch.send_chunk(
            ChunkMessage(work.id, work.document_id, work.page_start, work.page_stop),
            priority=work.priority,
        )
