"""Documents: accepting, claiming, moving, finishing, listing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Update, and_, case, exists, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from db import admission, planned_chunks
from db.errors import RowNotFoundError, StaleStateError
from db.models import Chunk, Document, Page
from db.planned_chunks import PlannedChunk
from db.states import (
    FINAL_DOCUMENT_STATES,
    OPEN_CHUNK_STATES,
    OPEN_DOCUMENT_STATES,
    DocumentState,
    PageState,
    require_document_move,
)

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class DocumentClaim:
    """The right to work on a document until the lease ends; ``attempt`` is the fencing token."""

    document_id: UUID
    generation: int
    attempt: int


def insert(session: Session, document: Document, *, dispatch_after_s: float) -> None:
    """Add a queued document that the sweep sends by itself after ``dispatch_after_s`` seconds.

    0 or less says that nobody else sends it.
    """
    document.dispatch_after = func.now() + timedelta(seconds=dispatch_after_s)
    document.deliveries = int(dispatch_after_s > 0)
    session.add(document)
    session.flush()


def insert_all(session: Session, added: Sequence[Document], *, dispatch_after_s: float) -> None:
    """Add many queued documents in one go; see ``insert``."""
    for document in added:
        document.dispatch_after = func.now() + timedelta(seconds=dispatch_after_s)
    session.add_all(added)
    session.flush()


def get(session: Session, document_id: UUID, *, tenant: str | None = None) -> Document:
    """Return a document; with ``tenant``, only if it is that tenant's.

    A tenant does not see a document that is being deleted.

    Raises:
        RowNotFoundError: there is none.
    """
    return _visible(session.get(Document, document_id), document_id, tenant=tenant)


def get_locked(session: Session, document_id: UUID, *, tenant: str) -> Document:
    """Return a document of this tenant that nobody else changes before the transaction ends.

    Raises:
        RowNotFoundError: there is none.
    """
    lock(session, document_id)
    document = session.get(Document, document_id, populate_existing=True)
    return _visible(document, document_id, tenant=tenant)


def lock(session: Session, document_id: UUID) -> None:
    """Keep everybody else from changing a document, or its chunks' ends, until COMMIT.

    FOR NO KEY UPDATE, as every lock of a document: Postgres itself takes FOR KEY SHARE of it for a
    chunk that is written twice in a transaction. Who waited for that with the chunk in hand would
    block whoever has the document and waits for the chunk.
    """
    session.execute(
        select(Document.id).where(Document.id == document_id).with_for_update(key_share=True)
    )


def find_by_idempotency_key(session: Session, *, tenant: str, key: str) -> Document | None:
    """Return the document that was accepted under this key before, if any."""
    return session.scalars(
        select(Document).where(Document.tenant == tenant, Document.idempotency_key == key)
    ).one_or_none()


def list_page(
    session: Session,
    *,
    tenant: str,
    limit: int,
    batch_id: UUID | None = None,
    state: DocumentState | None = None,
    before: UUID | None = None,
) -> Sequence[Document]:
    """Return documents newest first; ids are time-ordered, so ``before`` is a stable cursor."""
    query = select(Document).where(
        Document.tenant == tenant, Document.state != DocumentState.DELETING
    )
    if batch_id is not None:
        query = query.where(Document.batch_id == batch_id)
    if state is not None:
        query = query.where(Document.state == state)
    if before is not None:
        query = query.where(Document.id < before)
    return session.scalars(query.order_by(Document.id.desc()).limit(limit)).all()


def move(
    session: Session,
    document_id: UUID,
    *,
    source: DocumentState,
    target: DocumentState,
    values: Mapping[str, Any] | None = None,
    attempt: int | None = None,
) -> None:
    """Move a document from one state to the next, once.

    State (and fencing token, where given) are compared and set in one statement, so of two
    workers that hold the same redelivered message only one goes on.

    Raises:
        ValueError: no such move exists.
        StaleStateError: the document is no longer in ``source``, or another attempt holds it.
    """
    require_document_move(source, target)
    statement = update(Document).where(Document.id == document_id, Document.state == source)
    if attempt is not None:
        statement = statement.where(Document.attempt == attempt)
    _set_once(session, statement.values(state=target, **(values or {})), document_id)


def claim_split(
    session: Session, document_id: UUID, *, worker: str, lease_s: float, max_attempts: int
) -> DocumentClaim | None:
    """Take a queued document, or one whose splitter's lease ended; None: nothing to do.

    A document that has used up ``max_attempts`` is left to the sweep, which gives it up.
    """
    return _claim(
        session,
        document_id,
        may_claim=or_(
            Document.state == DocumentState.QUEUED,
            and_(Document.state == DocumentState.SPLITTING, _lease_is_over()),
        ),
        values={"state": DocumentState.SPLITTING, "splitting_at": func.now()},
        worker=worker,
        lease_s=lease_s,
        max_attempts=max_attempts,
    )


def claim_assembly(
    session: Session,
    document_id: UUID,
    *,
    generation: int,
    worker: str,
    lease_s: float,
    max_attempts: int,
) -> DocumentClaim | None:
    """Take a document whose chunks are all final; None: chunks remain, or somebody has it.

    The message that leads here is not trusted: a chord may fire early, twice or never.
    """
    chunks_remain = exists().where(
        Chunk.document_id == document_id,
        Chunk.generation == generation,
        Chunk.state.in_(OPEN_CHUNK_STATES),
    )
    return _claim(
        session,
        document_id,
        may_claim=and_(
            Document.generation == generation,
            ~chunks_remain,
            or_(
                Document.state == DocumentState.RECOGNIZING,
                and_(Document.state == DocumentState.ASSEMBLING, _lease_is_over()),
            ),
        ),
        values={"state": DocumentState.ASSEMBLING, "assembling_at": func.now()},
        worker=worker,
        lease_s=lease_s,
        max_attempts=max_attempts,
    )


def is_held(session: Session, claim: DocumentClaim, *, worker: str) -> bool:
    """Say whether a claim is this worker's, after whatever is being committed of it."""
    held = select(Document.id).where(*_is_held_by(claim), Document.worker == worker)
    return session.scalar(held.with_for_update()) is not None


def locked_value(
    session: Session, claim: DocumentClaim, column: InstrumentedAttribute[Value]
) -> Value | None:
    """Return what a document has in a column, after whatever is being committed of it."""
    lock(session, claim.document_id)
    return session.scalar(select(column).where(Document.id == claim.document_id))


def is_split(session: Session, claim: DocumentClaim, chunks: Sequence[PlannedChunk]) -> bool:
    """Say whether these chunks are the document's, after whatever is being committed of it."""
    lock(session, claim.document_id)
    return session.get(Chunk, chunks[0].id) is not None


def is_finished(session: Session, claim: DocumentClaim) -> bool:
    """Say whether this attempt ended the document, after whatever is being committed of it."""
    finished = select(Document.id).where(
        Document.id == claim.document_id,
        Document.attempt == claim.attempt,
        Document.state.in_(FINAL_DOCUMENT_STATES),
    )
    return session.scalar(finished.with_for_update()) is not None


def renew(session: Session, claim: DocumentClaim, *, lease_s: float) -> None:
    """Extend the lease of a split or an assembly.

    Raises:
        StaleStateError: another worker has the document by now; whoever asked is a zombie.
    """
    lease_end = func.now() + timedelta(seconds=lease_s)
    statement = _held_by(claim).values(lease_expires_at=lease_end, dispatch_after=lease_end)
    _set_once(session, statement, claim.document_id)


def require_held(session: Session, claim: DocumentClaim) -> None:
    """Ask, without extending the lease, whether the claim still stands.

    Raises:
        StaleStateError: the document was cancelled or deleted, or another worker has it.
    """
    held = select(Document.id).where(*_is_held_by(claim))
    if session.scalar(held) is None:
        raise StaleStateError(f"document {claim.document_id} was moved by somebody else")


def put_back(session: Session, claim: DocumentClaim, *, delay_s: float, is_excused: bool) -> None:
    """Give a claimed split or assembly back, to be sent again after ``delay_s`` seconds.

    ``is_excused`` says that this attempt does not count towards the cap.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    statement = _held_by(claim).values(
        excused=Document.excused + int(is_excused),
        state=case(
            (Document.state == DocumentState.SPLITTING, DocumentState.QUEUED),
            else_=DocumentState.RECOGNIZING,
        ),
        lease_expires_at=None,
        worker=None,
        dispatch_after=func.now() + timedelta(seconds=delay_s),
    )
    _set_once(session, statement, claim.document_id)


def write_held(session: Session, claim: DocumentClaim, values: Mapping[str, Any]) -> None:
    """Write columns of a document that is being split or assembled.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    _set_once(session, _held_by(claim).values(**values), claim.document_id)


def start_recognizing(
    session: Session,
    claim: DocumentClaim,
    *,
    page_count: int,
    chunks: Sequence[PlannedChunk],
    chord_grace_s: float | None,
) -> None:
    """Write the page and chunk rows of a split document and move it on, in one transaction.

    Pages that are in no chunk are left out. The chunk rows are their own outbox. Are they about to
    be sent as a chord, the sweep sends what is not claimed ``chord_grace_s`` seconds from now;
    None: it sends them all, from now on. What was guessed of the document for admission, and
    counted to its key, is set right.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    wanted = {index for chunk in chunks for index in range(chunk.page_start, chunk.page_stop)}
    document, pages_more = leave_split(
        session,
        claim,
        page_rows=[
            {
                "page_index": page_index,
                "state": PageState.QUEUED if page_index in wanted else PageState.SKIPPED,
            }
            for page_index in range(page_count)
        ],
        values={
            "by_chord": chord_grace_s is not None,
            "dispatch_after": None,  # the chunks are what somebody has to look at now
        },
    )
    planned_chunks.insert(session, document, chunks, chord_grace_s=chord_grace_s)
    # Last: uploads with the same key wait for this row.
    admission.correct_usage(session, document, pages_more=pages_more)


def leave_split(
    session: Session,
    claim: DocumentClaim,
    *,
    page_rows: Sequence[dict[str, Any]],
    values: Mapping[str, Any],
) -> tuple[Document, int]:
    """Move a document on from its split, and write the rows of its pages.

    Args:
        session: an open transaction.
        claim: of the split.
        page_rows: of all pages, those too that are left out; without what is the claim's.
        values: further columns of the document.

    Returns:
        The document, and how many more pages are to be read of it than was guessed; below 0 where
        they are fewer.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    document = get(session, claim.document_id)
    pages_guessed = document.page_estimate
    skipped_count = sum(row["state"] == PageState.SKIPPED for row in page_rows)
    wanted_count = len(page_rows) - skipped_count
    move(
        session,
        claim.document_id,
        source=DocumentState.SPLITTING,
        target=DocumentState.RECOGNIZING,
        attempt=claim.attempt,
        values={
            **admission.real_pages(len(page_rows), wanted_count),
            "pages_skipped": skipped_count,
            "recognizing_at": func.now(),
            "excused": claim.attempt,  # the assembly counts its own attempts
            "deliveries": 0,
            "lease_expires_at": None,
            "worker": None,
            **values,
        },
    )
    of_claim = {"document_id": claim.document_id, "generation": claim.generation}
    session.bulk_insert_mappings(Page.__mapper__, [{**of_claim, **row} for row in page_rows])
    return document, wanted_count - pages_guessed


def fail(session: Session, claim: DocumentClaim, *, code: str, detail: str) -> None:
    """End a document that is at fault itself, while it is being split or assembled.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    statement = _held_by(claim).values(
        state=DocumentState.FAILED, error_code=code, error_detail=detail, **_FINAL
    )
    _set_once(session, statement, claim.document_id)


def give_up(
    session: Session, document_id: UUID, *, code: str, detail: str, max_attempts: int
) -> bool:
    """End a document that no worker could split or assemble.

    False: somebody is at it after all, or it has got further, or begun anew, since it was found.
    """
    row = session.execute(
        update(Document)
        .where(
            Document.id == document_id,
            Document.state.in_(sorted(OPEN_DOCUMENT_STATES)),
            Document.attempt - Document.excused >= max_attempts,
            or_(Document.lease_expires_at.is_(None), _lease_is_over()),
        )
        .values(
            state=DocumentState.FAILED,
            error_code=code,
            error_detail=detail,
            attempt=Document.attempt + 1,  # a worker that was only slow finds its token outdated
            **_FINAL,
        )
        .returning(Document.id)
    ).one_or_none()
    return row is not None


def finish(
    session: Session,
    claim: DocumentClaim,
    *,
    state: DocumentState,
    result_key: str,
    result_size_bytes: int,
    values: Mapping[str, Any],
) -> None:
    """Publish the result: from here on ``result_key`` is what readers get.

    Raises:
        StaleStateError: the claim is no longer ours; another attempt publishes.
    """
    move(
        session,
        claim.document_id,
        source=DocumentState.ASSEMBLING,
        target=state,
        attempt=claim.attempt,
        values={
            **values,
            "result_key": result_key,
            "result_size_bytes": result_size_bytes,
            **_FINAL,
        },
    )


_FINAL: Mapping[str, Any] = {
    "finished_at": func.now(),
    "dispatch_after": None,
    "lease_expires_at": None,
    "worker": None,
}


def _held_by(claim: DocumentClaim) -> Update:
    return update(Document).where(*_is_held_by(claim))


def _is_held_by(claim: DocumentClaim) -> tuple[ColumnElement[bool], ...]:
    return (
        Document.id == claim.document_id,
        Document.attempt == claim.attempt,
        Document.state.in_([DocumentState.SPLITTING, DocumentState.ASSEMBLING]),
    )


def _visible(document: Document | None, document_id: UUID, *, tenant: str | None) -> Document:
    is_hidden = document is None or (
        tenant is not None
        and (document.tenant != tenant or document.state == DocumentState.DELETING)
    )
    if document is None or is_hidden:
        raise RowNotFoundError(f"no document {document_id}")
    return document


def _lease_is_over() -> ColumnElement[bool]:
    return Document.lease_expires_at < func.now()


def _claim(
    session: Session,
    document_id: UUID,
    *,
    may_claim: ColumnElement[bool],
    values: Mapping[str, Any],
    worker: str,
    lease_s: float,
    max_attempts: int,
) -> DocumentClaim | None:
    lease_end = func.now() + timedelta(seconds=lease_s)
    row = session.execute(
        update(Document)
        .where(
            Document.id == document_id,
            may_claim,
            Document.attempt - Document.excused < max_attempts,
        )
        .values(
            attempt=Document.attempt + 1,
            deliveries=0,  # messages do arrive: the next wait begins anew
            worker=worker,
            lease_expires_at=lease_end,
            dispatch_after=lease_end,
            **values,
        )
        .returning(Document.generation, Document.attempt)
    ).one_or_none()
    return row and DocumentClaim(document_id, generation=row.generation, attempt=row.attempt)


def _set_once(session: Session, statement: Update, document_id: UUID) -> None:
    if session.execute(statement.returning(Document.id)).one_or_none() is None:
        raise StaleStateError(f"document {document_id} was moved by somebody else")
