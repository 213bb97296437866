"""Chunks: claiming with a lease, renewing, publishing with a fencing token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Update, and_, case, func, literal, or_, select, update
from sqlalchemy.orm import Session

from db import documents, events, planned_chunks
from db.errors import StaleStateError
from db.models import Chunk, Document, Page
from db.states import OPEN_CHUNK_STATES, ChunkState, DocumentState, PageState


@dataclass(frozen=True, slots=True)
class ChunkClaim:
    """The right to recognize a chunk until the lease ends; ``attempt`` is the fencing token.

    ``is_last_try`` is said of isolated pages alone, and only of those that were tried before.
    """

    chunk_id: UUID
    attempt: int
    document_id: UUID
    generation: int
    page_start: int
    page_stop: int
    is_isolated: bool = False
    is_last_try: bool = False


@dataclass(frozen=True, slots=True)
class PageRecord:
    """What the ledger keeps of one page; ``values`` are columns of ``pages``."""

    page_index: int
    state: PageState
    values: Mapping[str, Any]


def list_of_document(session: Session, document_id: UUID) -> Sequence[Chunk]:
    """Return all chunks of a document, generation by generation, in page order."""
    return session.scalars(
        select(Chunk)
        .where(Chunk.document_id == document_id)
        .order_by(Chunk.generation, Chunk.page_start)
    ).all()


def claim(
    session: Session, chunk_id: UUID, *, worker: str, lease_s: float, max_attempts: int
) -> ChunkClaim | None:
    """Take a queued chunk, or one whose worker's lease ended; None: nothing to do here.

    A chunk that has used up ``max_attempts`` is left to the sweep, which isolates its pages or
    gives it up: the broker redelivers a message whose worker died at once and for ever.
    """
    lease_end = func.now() + timedelta(seconds=lease_s)
    row = session.execute(
        update(Chunk)
        .where(
            Chunk.id == chunk_id,
            _is_free(),
            Chunk.attempt - Chunk.excused < max_attempts,
            # A chunk of a cancelled or superseded document is not worth a page.
            Document.id == Chunk.document_id,
            Document.state == DocumentState.RECOGNIZING,
            Document.generation == Chunk.generation,
        )
        .values(
            state=ChunkState.RUNNING,
            attempt=Chunk.attempt + 1,
            worker=worker,
            lease_expires_at=lease_end,
            dispatch_after=lease_end,
            error_code=None,  # who dies without a word leaves none
            # Messages do arrive: the next wait begins anew. The first try leaves the count, which
            # says whether a chord is sound.
            deliveries=case((Chunk.attempt > 0, 0), else_=Chunk.deliveries),
        )
        .returning(
            Chunk.attempt,
            Chunk.document_id,
            Chunk.generation,
            Chunk.page_start,
            Chunk.page_stop,
            Chunk.is_isolated,
            and_(
                Chunk.is_isolated,
                Chunk.attempt - Chunk.excused == max_attempts,
                literal(max_attempts > 1),
            ),
        )
    ).one_or_none()
    return row and ChunkClaim(chunk_id, *row)


def is_held(session: Session, claim: ChunkClaim, *, worker: str) -> bool:
    """Say whether a claim is this worker's, after whatever is being committed of it."""
    held = select(Chunk.id).where(*_is_held_by(claim), Chunk.worker == worker)
    return session.scalar(held.with_for_update()) is not None


def is_published(session: Session, chunk_id: UUID, *, result_key: str) -> bool:
    """Say whether these results of a chunk count, after whatever is being committed of it."""
    published = select(Chunk.id).where(Chunk.id == chunk_id, Chunk.result_key == result_key)
    return session.scalar(published.with_for_update()) is not None


def renew(session: Session, claim: ChunkClaim, *, lease_s: float) -> None:
    """Extend the lease.

    Raises:
        StaleStateError: another worker has the chunk by now; whoever asked is a zombie.
    """
    lease_end = func.now() + timedelta(seconds=lease_s)
    _set_once(session, claim, {"lease_expires_at": lease_end, "dispatch_after": lease_end})


def require_held(session: Session, claim: ChunkClaim) -> None:
    """Ask, without extending the lease, whether the claim still stands.

    Raises:
        StaleStateError: the document was cancelled or deleted, or another worker has the chunk.
    """
    if session.scalar(select(Chunk.id).where(*_is_held_by(claim))) is None:
        raise StaleStateError(f"chunk {claim.chunk_id} is held by nobody or another attempt")


def put_back(session: Session, claim: ChunkClaim, *, delay_s: float, is_excused: bool) -> None:
    """Give a chunk back, to be sent again after ``delay_s`` seconds.

    Args:
        session: an open transaction.
        claim: what ``claim`` returned.
        delay_s: seconds until the sweep sends the chunk again.
        is_excused: whether this attempt does not count towards the cap, because the worker or
            a server, and nothing about the chunk, was at fault.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    _set_once(
        session,
        claim,
        {
            "state": ChunkState.QUEUED,
            # The token itself never goes back: a late write of this attempt stays fenced.
            "excused": Chunk.excused + int(is_excused),
            "lease_expires_at": None,
            "worker": None,
            "dispatch_after": func.now() + timedelta(seconds=delay_s),
        },
    )


def note_failure(session: Session, claim: ChunkClaim, code: str) -> None:
    """Record what an attempt fails with, or is about to die of; the next claim forgets it.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    _set_once(session, claim, {"error_code": code})


def publish(
    session: Session,
    claim: ChunkClaim,
    *,
    result_key: str,
    pages: Sequence[PageRecord],
    assemble_after_s: float,
) -> bool:
    """Make the results of a chunk the ones that count.

    Returns:
        Whether the document waits for its assembly now and no chord will call for it: this was
        its last chunk, and there is no chord, or it is dead or in doubt.

    The document's row is locked first: without that the last two chunks could each see the
    other one open, and nobody would assemble.

    Raises:
        StaleStateError: another attempt owns the chunk; nothing was changed.
    """
    documents.lock(session, claim.document_id)
    _set_once(
        session,
        claim,
        {
            "state": ChunkState.SUCCEEDED,
            "result_key": result_key,
            "error_code": None,
            **_FINAL,
        },
    )
    # In one go: statement by statement, a page takes milliseconds of this process.
    session.bulk_update_mappings(
        Page.__mapper__,
        [
            {
                "document_id": claim.document_id,
                "page_index": page.page_index,
                "state": page.state,
                "generation": claim.generation,
                "attempts": claim.attempt,
                "result_key": result_key,
                **page.values,
            }
            for page in pages
        ],
    )
    is_last = _close_document_if_done(
        session, claim.document_id, claim.generation, assemble_after_s
    )
    return is_last and not _has_sound_chord(session, claim.document_id, claim.generation)


def lock_spent(session: Session, chunk_id: UUID, *, max_attempts: int) -> Chunk | None:
    """Return a chunk that has used up its attempts, until COMMIT kept from everybody else.

    None: it was claimed, isolated or ended meanwhile. A chunk of a document that has gone on
    without it is ended here.
    """
    document_id = session.scalar(select(Chunk.document_id).where(Chunk.id == chunk_id))
    if document_id is None:
        return None
    document = session.execute(
        select(Document.state, Document.generation)
        .where(Document.id == document_id)
        .with_for_update(key_share=True)
    ).one_or_none()
    chunk = session.scalars(
        select(Chunk)
        .where(Chunk.id == chunk_id, _is_free(), Chunk.attempt - Chunk.excused >= max_attempts)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one_or_none()
    if chunk is None or document == (DocumentState.RECOGNIZING, chunk.generation):
        return chunk
    _end_locked(session, chunk, ChunkState.CANCELLED)
    return None


def isolate(session: Session, chunk: Chunk) -> None:
    """Make each page of a chunk from ``lock_spent`` a chunk of its own, due at once.

    One poison page so costs the others nothing but time. The chord of the document is dead: its
    members were other chunks.
    """
    session.execute(update(Document).where(Document.id == chunk.document_id).values(by_chord=False))
    if chunk.page_stop - chunk.page_start == 1:
        # The same row starts over: its page range is taken.
        session.execute(
            update(Chunk)
            .where(Chunk.id == chunk.id)
            .values(
                state=ChunkState.QUEUED,
                is_isolated=True,
                attempt=Chunk.attempt + 1,
                excused=Chunk.attempt + 1,
                deliveries=0,
                lease_expires_at=None,
                worker=None,
                dispatch_after=func.now(),
            )
        )
        return
    _end_locked(session, chunk, ChunkState.ISOLATED)
    pages = planned_chunks.plan_chunks(range(chunk.page_start, chunk.page_stop), chunk_pages=1)
    document = session.get_one(Document, chunk.document_id)
    planned_chunks.insert(session, document, pages, is_isolated=True)


def give_up(session: Session, chunk_id: UUID, *, code: str, detail: str) -> None:
    """End a chunk that no worker could finish: its pages fail, and the document goes on.

    Nothing happens when somebody finished or renewed the chunk in the meantime.
    """
    chunk = session.get(Chunk, chunk_id)
    if chunk is None:
        return
    documents.lock(session, chunk.document_id)
    row = session.execute(
        update(Chunk)
        .where(Chunk.id == chunk_id, _is_free())
        # One more attempt, so that a worker that was only slow finds its token outdated.
        .values(state=ChunkState.FAILED, error_code=code, attempt=Chunk.attempt + 1, **_FINAL)
        .returning(Chunk.attempt)
    ).one_or_none()
    if row is not None:
        held = ChunkClaim(
            chunk_id,
            row.attempt,
            chunk.document_id,
            chunk.generation,
            chunk.page_start,
            chunk.page_stop,
        )
        _fail_pages(session, held, code, detail)
        _close_document_if_done(session, chunk.document_id, chunk.generation, 0)


def fail(session: Session, claim: ChunkClaim, *, code: str, detail: str) -> None:
    """End a chunk from within: its pages fail, and the document goes on.

    Raises:
        StaleStateError: another attempt owns the chunk; nothing was changed.
    """
    documents.lock(session, claim.document_id)
    _set_once(session, claim, {"state": ChunkState.FAILED, "error_code": code, **_FINAL})
    _fail_pages(session, claim, code, detail)
    _close_document_if_done(session, claim.document_id, claim.generation, 0)


_FINAL: Mapping[str, Any] = {"dispatch_after": None, "lease_expires_at": None, "worker": None}


def _is_free() -> ColumnElement[bool]:
    return or_(
        Chunk.state == ChunkState.QUEUED,
        and_(Chunk.state == ChunkState.RUNNING, Chunk.lease_expires_at < func.now()),
    )


def _is_held_by(claim: ChunkClaim) -> tuple[ColumnElement[bool], ...]:
    return (
        Chunk.id == claim.chunk_id,
        Chunk.state == ChunkState.RUNNING,
        Chunk.attempt == claim.attempt,
    )


def _end_locked(session: Session, chunk: Chunk, state: ChunkState) -> None:
    session.execute(
        update(Chunk)
        .where(Chunk.id == chunk.id)
        # One more attempt, so that a worker that was only slow finds its token outdated.
        .values(**_FINAL, state=state, attempt=Chunk.attempt + 1)
    )


def _fail_pages(session: Session, claim: ChunkClaim, code: str, detail: str) -> None:
    session.execute(
        update(Page)
        .where(
            Page.document_id == claim.document_id,
            Page.page_index >= claim.page_start,
            Page.page_index < claim.page_stop,
        )
        .values(
            state=PageState.FAILED,
            generation=claim.generation,
            attempts=claim.attempt,
            error_code=code,
            error_detail=detail,
        )
    )


def _close_document_if_done(
    session: Session, document_id: UUID, generation: int, assemble_after_s: float
) -> bool:
    open_chunks = session.scalar(
        select(func.count())
        .select_from(Chunk)
        .where(
            Chunk.document_id == document_id,
            Chunk.generation == generation,
            Chunk.state.in_(OPEN_CHUNK_STATES),
        )
    )
    if open_chunks:
        events.note_progress(session, document_id)
        return False
    session.execute(
        update(Document)
        .where(Document.id == document_id, Document.state == DocumentState.RECOGNIZING)
        .values(dispatch_after=func.now() + timedelta(seconds=assemble_after_s))
    )
    return True


def _has_sound_chord(session: Session, document_id: UUID, generation: int) -> bool:
    """Say whether all chunks came as a chord and none of them twice.

    An attempt that failed has killed the chord. A chunk that was sent again may have been done
    without it, and its part of the chord been counted too early or never.
    """
    most_attempts = func.max(Chunk.attempt)
    most_deliveries = func.max(Chunk.deliveries)
    return bool(
        session.scalar(
            select(and_(Document.by_chord, most_attempts <= 1, most_deliveries <= 1))
            .join(Chunk, Chunk.document_id == Document.id)
            .where(Document.id == document_id, Chunk.generation == generation)
            .group_by(Document.id)
        )
    )


def _set_once(session: Session, claim: ChunkClaim, values: Mapping[str, Any]) -> None:
    statement: Update = update(Chunk).where(*_is_held_by(claim)).values(**values)
    if session.execute(statement.returning(Chunk.id)).one_or_none() is None:
        raise StaleStateError(f"chunk {claim.chunk_id} is held by another attempt")
