"""End what has used up its attempts: pages are tried one by one first, and never for ever."""

from dataclasses import dataclass

import structlog

from db import chunks, documents, exports, outbox
from db.engine import Transaction
from db.outbox import DueWork, Work
from db.states import ChunkState
from workers import failures
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ended:
    """What was done: documents and pages that have failed, and chunks whose pages go on alone."""

    given_up: int = 0
    isolated: int = 0


def end_spent(*, transaction: Transaction, rules: WorkRules, limit: int) -> Ended:
    """End due rows that have used up their attempts, whatever the queues have room for.

    A chunk is isolated: each of its pages becomes a chunk of its own. A page that was tried alone,
    a document that nobody could split or assemble, and an export that nobody could make, has
    failed. Two sweeps may do this at once.

    Args:
        transaction: opens a transaction.
        rules: the most attempts, and the delay until another sweep looks at the same row.
        limit: most rows of one kind.
    """
    with transaction() as session:
        spent = [
            due
            for work in Work
            for due in outbox.take_spent(
                session,
                work,
                max_attempts=rules.max_attempts,
                limit=limit,
                backoff_s=rules.dispatch_grace_s,
            )
        ]
    given_up = isolated = 0
    for work in spent:
        if work.work is Work.EXPORT:
            given_up += _give_up_export(work, transaction, rules)
            continue
        if work.work is not Work.RECOGNIZE:
            given_up += _give_up_document(work, transaction, rules)
            continue
        match _end_chunk(work, transaction, rules):
            case ChunkState.FAILED:
                given_up += 1
            case ChunkState.ISOLATED:
                isolated += 1
    return Ended(given_up, isolated)


def _give_up_document(work: DueWork, transaction: Transaction, rules: WorkRules) -> bool:
    cause = failures.ERROR_CODES["worker_lost"]
    with transaction() as session:
        is_given_up = documents.give_up(
            session,
            work.id,
            code=cause.code,
            detail=cause.sentence,
            max_attempts=rules.max_attempts,
        )
    if is_given_up:
        log.error(
            "work given up",
            work=work.work,
            document_id=str(work.id),
            code=cause.code,
            attempts=rules.max_attempts,
        )
    return is_given_up


def _give_up_export(work: DueWork, transaction: Transaction, rules: WorkRules) -> bool:
    code = failures.ERROR_CODES["worker_lost"].code
    with transaction() as session:
        is_given_up = exports.give_up(session, work.id, code=code, max_attempts=rules.max_attempts)
    if is_given_up:
        log.error(
            "work given up",
            work=work.work,
            document_id=str(work.document_id),
            code=code,
            attempts=rules.max_attempts,
        )
    return is_given_up


def _end_chunk(work: DueWork, transaction: Transaction, rules: WorkRules) -> ChunkState | None:
    """Isolate a chunk, or fail a page that was isolated; None: somebody else was faster."""
    fields = {
        "document_id": str(work.document_id),
        "chunk_id": str(work.id),
        "attempts": rules.max_attempts,
    }
    with transaction() as session:
        chunk = chunks.lock_spent(session, work.id, max_attempts=rules.max_attempts)
        if chunk is None:
            return None
        last_code, is_isolated = chunk.error_code, chunk.is_isolated
        cause = failures.cause_of_lost_page(last_code)
        if is_isolated:
            chunks.give_up(session, work.id, code=cause.code, detail=cause.sentence)
        else:
            chunks.isolate(session, chunk)
    if is_isolated:
        log.error("work given up", work=work.work, code=cause.code, **fields)
        return ChunkState.FAILED
    pages = work.page_stop - work.page_start
    log.warning("chunk isolated", pages=pages, code=cause.code, **fields)
    return ChunkState.ISOLATED
