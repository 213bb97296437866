"""Split a document: count its pages, plan its chunks, send its chord if there is room for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from db import documents, known_outcome, outbox
from db.documents import DocumentClaim
from db.engine import Session, Transaction
from db.planned_chunks import PlannedChunk, plan_chunks
from db.states import Priority
from workers import claimed_work, dispatch, queue_room
from workers.content_cache import Content, ContentCache
from workers.dispatch import ChunkMessage, DispatchError
from workers.lease import Lease
from workers.ocr.options import OcrOptions
from workers.open_source import ClaimedSource, SourceOpener, read_source
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    source: ClaimedSource
    tenant: str
    options: OcrOptions
    priority: Priority

    @property
    def claim(self) -> DocumentClaim:
        return self.source.claim


def split_document(
    document_id: UUID,
    *,
    transaction: Transaction,
    opener: SourceOpener,
    cache: ContentCache | None,
    chunk_pages: int,
    rules: WorkRules,
) -> int:
    """Turn a queued document into page and chunk rows; return the page count.

    All chunks are sent at once as a chord where the queue has room for them; else none is, and
    the sweep sends them as room appears.

    A source that lies in a user's bucket is copied first, once. A document whose content was read
    before gets the pages of that, and waits for its assembly; ``cache`` is None where none does.

    0: nothing was to be done, because somebody else has the document, or its file was at fault
    and the document ended as failed. Run twice, the second run finds the first one's claim.
    """
    work = _claim(document_id, transaction=transaction, rules=rules)
    if work is None:
        return 0
    claim = work.claim

    page_count = 0
    with claimed_work.held(claim, documents, transaction=transaction, rules=rules) as lease:
        sha256 = opener.ensure_copied(work.source, check=lease.check)
        served = _serve(work, sha256, cache, lease, rules)
        if served is not None:
            return served
        page_count = opener.open_readable(work.source, sha256, check=lease.check)
        wanted = work.options.page_indexes(page_count)
        chunks = plan_chunks(wanted, chunk_pages=chunk_pages)
        with queue_room.place_for_chord(len(chunks), limit=rules.queue_limit) as by_chord:
            _start_recognizing(
                claim,
                chunks,
                page_count=page_count,
                transaction=transaction,
                chord_grace_s=rules.dispatch_grace_s if by_chord else None,
            )
            log.info(
                "document split",
                pages=page_count,
                wanted=len(wanted),
                chunks=len(chunks),
                by_chord=by_chord,
            )
            # Committed first: a message must not overtake the row it speaks of. Dying here loses
            # the messages, and the sweep sends what is not claimed within the grace.
            if by_chord:
                _send(claim, chunks, work.priority, transaction)
    return page_count


def _claim(document_id: UUID, *, transaction: Transaction, rules: WorkRules) -> _Work | None:
    work = claimed_work.take(
        lambda session: documents.claim_split(
            session,
            document_id,
            worker=rules.worker,
            lease_s=rules.lease_s,
            max_attempts=rules.max_attempts,
        ),
        documents,
        read=_read_work,
        transaction=transaction,
        rules=rules,
    )
    if work is None:
        log.info("split skipped", document_id=str(document_id))
        return None
    structlog.contextvars.bind_contextvars(document_id=str(document_id), attempt=work.claim.attempt)
    return work


def _read_work(session: Session, claim: DocumentClaim) -> _Work:
    document = documents.get(session, claim.document_id)
    return _Work(
        read_source(session, claim),
        document.tenant,
        OcrOptions.from_row(document.options),
        Priority(document.priority),
    )


def _serve(
    work: _Work, sha256: str, cache: ContentCache | None, lease: Lease, rules: WorkRules
) -> int | None:
    """Return the page count of a document that need not be read; it is ready to be assembled."""
    if cache is None:
        return None
    claim = work.claim
    page_count = cache.serve(
        claim,
        Content(work.tenant, sha256, work.options),
        check=lease.check,
        assemble_after_s=rules.dispatch_grace_s,
    )
    if page_count is not None:
        try:
            dispatch.send_assembly_if_place(
                claim.document_id,
                claim.generation,
                priority=work.priority,
                limit=rules.queue_limit,
            )
        except DispatchError:
            log.warning("assembly not sent")
    return page_count


def _start_recognizing(
    claim: DocumentClaim,
    chunks: Sequence[PlannedChunk],
    *,
    page_count: int,
    transaction: Transaction,
    chord_grace_s: float | None,
) -> None:
    known_outcome.commit(
        transaction,
        lambda session: documents.start_recognizing(
            session,
            claim,
            page_count=page_count,
            chunks=chunks,
            chord_grace_s=chord_grace_s,
        ),
        stands=lambda session, _: documents.is_split(session, claim, chunks),
    )


def _send(
    claim: DocumentClaim,
    chunks: Sequence[PlannedChunk],
    priority: Priority,
    transaction: Transaction,
) -> None:
    messages = [
        ChunkMessage(chunk.id, claim.document_id, chunk.page_start, chunk.page_stop)
        for chunk in chunks
    ]
    try:
        dispatch.send_chord(claim.document_id, claim.generation, messages, priority=priority)
    except DispatchError:
        log.warning("chord not sent, its chunks are left to the sweep")
        with transaction() as session:
            outbox.forget_chord(session, claim.document_id, claim.generation)
