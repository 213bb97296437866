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
from storage import source_object
from storage.source_object import SourceObject
from workers import claimed_work, dispatch, queue_room
from workers.content_cache import Content, ContentCache
from workers.copy_source import SourceCopier
from workers.dispatch import ChunkMessage, DispatchError
from workers.lease import Lease
from workers.ocr.options import OcrOptions
from workers.page_renderer import PageRenderer
from workers.source_file import SourceFile
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Source:
    claim: DocumentClaim
    tenant: str
    sha256: str
    options: OcrOptions
    priority: Priority
    object: SourceObject | None


def split_document(
    document_id: UUID,
    *,
    transaction: Transaction,
    source_file: SourceFile,
    source_copier: SourceCopier,
    cache: ContentCache | None,
    renderer: PageRenderer,
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
    source = _claim(document_id, transaction=transaction, rules=rules)
    if source is None:
        return 0
    claim = source.claim

    page_count = 0
    with claimed_work.held(claim, documents, transaction=transaction, rules=rules) as lease:
        sha256 = source.sha256 or _copy(source, source_copier, lease, transaction)
        page_count = _serve(source, sha256, cache, lease, rules) or 0
        if page_count:
            return page_count
        path = source_file.fetch(document_id, sha256=sha256)
        page_count = renderer.open(path).page_count
        wanted = source.options.page_indexes(page_count)
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
                _send(claim, chunks, source.priority, transaction)
    return page_count


def _claim(document_id: UUID, *, transaction: Transaction, rules: WorkRules) -> _Source | None:
    source = claimed_work.take(
        lambda session: documents.claim_split(
            session,
            document_id,
            worker=rules.worker,
            lease_s=rules.lease_s,
            max_attempts=rules.max_attempts,
        ),
        documents,
        read=_read_source,
        transaction=transaction,
        rules=rules,
    )
    if source is None:
        log.info("split skipped", document_id=str(document_id))
        return None
    structlog.contextvars.bind_contextvars(
        document_id=str(document_id), attempt=source.claim.attempt
    )
    return source


def _read_source(session: Session, claim: DocumentClaim) -> _Source:
    document = documents.get(session, claim.document_id)
    return _Source(
        claim,
        document.tenant,
        document.sha256,
        OcrOptions.model_validate(document.options),
        Priority(document.priority),
        source_object.from_row(document.source),
    )


def _copy(source: _Source, copier: SourceCopier, lease: Lease, transaction: Transaction) -> str:
    """Make a user's object the document's own; from here on it is as if it had been uploaded."""
    assert source.object is not None  # noqa: S101 - an upload has its hash, for the type checker
    claim = source.claim
    copied = copier.copy(claim.document_id, source.object, check=lease.check)
    # Before the file is opened: a retry after a failure then finds the copy, whatever has become
    # of the object.
    known_outcome.commit(
        transaction,
        lambda session: documents.record_source(
            session, claim, media_type=copied.media_type, sha256=copied.sha256
        ),
        stands=lambda session, _: documents.has_source(session, claim),
    )
    log.info("source copied", size_bytes=copied.size_bytes)
    return copied.sha256


def _serve(
    source: _Source, sha256: str, cache: ContentCache | None, lease: Lease, rules: WorkRules
) -> int | None:
    """Return the page count of a document that need not be read; it is ready to be assembled."""
    if cache is None:
        return None
    claim = source.claim
    page_count = cache.serve(
        claim,
        Content(source.tenant, sha256, source.options),
        check=lease.check,
        assemble_after_s=rules.dispatch_grace_s,
    )
    if page_count is not None:
        try:
            dispatch.send_assembly_if_place(
                claim.document_id,
                claim.generation,
                priority=source.priority,
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
