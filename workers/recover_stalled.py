"""Recover what stands still: the database is the truth, and the chord only the fast path.

A process of its own (``pagefleet reconcile``): a message that would start it could be lost too.
Two may run at once.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from db import chunks, documents, outbox
from db.engine import Transaction
from db.errors import DatabaseUnavailableError
from db.outbox import DueWork, Work
from workers import dispatch
from workers.dispatch import ChunkMessage, DispatchError
from workers.failures import ERROR_CODES
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)

_LOST = ERROR_CODES["worker_lost"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What one sweep did."""

    sent: int = 0
    given_up: int = 0


def recover_stalled(*, transaction: Transaction, rules: WorkRules, limit: int) -> Recovered:
    """Send again what is due, and give up what has used up its attempts.

    A row is marked before its message is sent: dying in between costs one back-off, while the
    other order could send the same row in every sweep.
    """
    with transaction() as session:
        due = outbox.take_due_documents(session, limit=limit, backoff_s=rules.dispatch_grace_s)
        due += outbox.take_due_chunks(session, limit=limit, backoff_s=rules.dispatch_grace_s)
    spent = [work for work in due if work.attempts >= rules.max_attempts]
    for work in spent:
        _give_up(work, transaction=transaction, rules=rules)
    to_send = [work for work in due if work.attempts < rules.max_attempts]
    sent = _send_all(to_send)
    if sent < len(to_send):
        with transaction() as session:
            outbox.put_back_unsent(session, to_send[sent:], delay_s=rules.retry_delay_s)
    if due:
        log.info("stalled work recovered", sent=sent, given_up=len(spent))
    return Recovered(sent, len(spent))


def sweep_until(
    stop: threading.Event,
    *,
    transaction: Transaction,
    rules: WorkRules,
    limit: int,
    interval_s: float,
) -> None:
    """Sweep again and again until ``stop`` is set; an unreachable database is waited for."""
    while not stop.is_set():
        try:
            recovered = recover_stalled(transaction=transaction, rules=rules, limit=limit)
        except DatabaseUnavailableError:
            log.warning("sweep skipped, the database is not reachable")
            recovered = Recovered()
        # A full sweep means that more is due: it goes on at once.
        if recovered.sent + recovered.given_up < limit:
            stop.wait(interval_s)


def _give_up(work: DueWork, *, transaction: Transaction, rules: WorkRules) -> None:
    with transaction() as session:
        if work.work is Work.RECOGNIZE:
            chunks.give_up(
                session,
                work.id,
                code=_LOST.code,
                detail=_LOST.sentence,
            )
        else:
            documents.give_up(session, work.id, code=_LOST.code, detail=_LOST.sentence)
    log.error("work given up", work=work.work, id=str(work.id), attempts=rules.max_attempts)


def _send_all(due: Iterable[DueWork]) -> int:
    """Send in order until the broker fails; return how many were sent."""
    sent = 0
    for work in due:
        try:
            _send(work)
        except DispatchError:
            # The rest would wait for the same time-out.
            log.warning("sweep stopped, the broker is not reachable", sent=sent)
            return sent
        sent += 1
    return sent


def _send(work: DueWork) -> None:
    if work.work is Work.SPLIT:
        dispatch.send_split(work.id, priority=work.priority)
    elif work.work is Work.ASSEMBLE:
        dispatch.send_assembly(work.id, work.generation, priority=work.priority)
    else:
        dispatch.send_chunk(
            ChunkMessage(work.id, work.document_id, work.page_start, work.page_stop),
            priority=work.priority,
        )
