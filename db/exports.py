"""Exports: asked for by a user, claimed with a lease, published with a fencing token."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Update, and_, case, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from db import documents
from db.errors import StaleStateError
from db.ids import new_id
from db.models import Document, Export
from db.states import DocumentState, ExportState, Priority

RETRY_FAILED_AFTER_S: Final = 3_600
"""After so long a failed export that is asked for again is tried again."""

MOST_OPEN_OF_TENANT: Final = 1_000
"""So many exports of a tenant may wait or be made at a time."""

MOST_OF_RESULT: Final = 1_000
"""So many exports one result may have: formats, times choices of pages."""

_FINAL: Mapping[str, Any] = {"dispatch_after": None, "lease_expires_at": None, "worker": None}


@dataclass(frozen=True, slots=True)
class ExportClaim:
    """The right to make an export until the lease ends; ``attempt`` is the fencing token."""

    export_id: UUID
    document_id: UUID
    generation: int
    attempt: int
    format: str
    pages: str


@dataclass(frozen=True, slots=True)
class Requested:
    """An export as it stands.

    Attributes:
        export: its row.
        is_new: whether nobody has been told of it yet.
        open_before: how many others of the tenant were open then; only of a new one.
    """

    export: Export
    is_new: bool
    open_before: int = 0


class Refusal(StrEnum):
    """Why a further export is not taken in."""

    TENANT_FULL = "tenant_full"
    RESULT_FULL = "result_full"


def request(
    session: Session,
    document: Document,
    *,
    generation: int,
    name: str,
    pages: str,
    dispatch_after_s: float,
) -> Requested | Refusal:
    """Return an export of a document, whose row is made, or made anew, where it has to be.

    There may be a few more than the limits where several are asked for at the same moment.

    Args:
        session: an open transaction.
        document: of the tenant that asks.
        generation: of the result.
        name: of the format.
        pages: the choice of pages; empty for all.
        dispatch_after_s: after so long the sweep sends a new one by itself.
    """
    key = {"document_id": document.id, "generation": generation, "format": name, "pages": pages}
    query = select(Export).filter_by(**key).execution_options(populate_existing=True)
    found = session.scalars(query).one_or_none()
    if found is not None and found.state != ExportState.FAILED:
        return Requested(found, is_new=False)
    open_before = _count_open(session, document.tenant)
    has_room = open_before < MOST_OPEN_OF_TENANT
    due = {
        "deliveries": int(dispatch_after_s > 0),
        "dispatch_after": func.now() + timedelta(seconds=dispatch_after_s),
    }
    added = None
    if found is None:
        if not has_room:
            return Refusal.TENANT_FULL
        if _count_of_result(session, document.id, generation) >= MOST_OF_RESULT:
            return Refusal.RESULT_FULL
        added = session.scalar(_addition(document, {**key, **due}))
    elif has_room:
        added = session.scalar(_new_try(found.id, due))
    return Requested(session.scalars(query).one(), added is not None, open_before)


def _addition(document: Document, values: Mapping[str, Any]) -> ReturningInsert[UUID]:
    return (
        insert(Export)
        .values(
            id=new_id(),
            tenant=document.tenant,
            lane=document.lane,
            priority=document.priority,
            state=ExportState.QUEUED,
            attempt=0,
            excused=0,
            **values,
        )
        .on_conflict_do_nothing()
        .returning(Export.id)
    )


def _new_try(export_id: UUID, due: Mapping[str, Any]) -> ReturningUpdate[UUID]:
    """Queue an export again that failed a while ago."""
    return (
        update(Export)
        .where(
            Export.id == export_id,
            Export.state == ExportState.FAILED,
            Export.finished_at < func.now() - timedelta(seconds=RETRY_FAILED_AFTER_S),
        )
        .values(
            state=ExportState.QUEUED,
            # The token itself never goes back.
            excused=Export.attempt,
            error_code=None,
            finished_at=None,
            **due,
        )
        .returning(Export.id)
    )


def _count_open(session: Session, tenant: str) -> int:
    """Count what a tenant has asked for and nobody has made yet, up to the limit."""
    # Found over the index of rows that somebody has to look at.
    rows = select(Export.id).where(
        Export.priority.in_(list(Priority)),
        Export.tenant == tenant,
        Export.dispatch_after.is_not(None),
    )
    return _count_up_to(session, rows, MOST_OPEN_OF_TENANT)


def _count_of_result(session: Session, document_id: UUID, generation: int) -> int:
    rows = select(Export.id).where(
        Export.document_id == document_id, Export.generation == generation
    )
    return _count_up_to(session, rows, MOST_OF_RESULT)


def _count_up_to(session: Session, rows: Select[UUID], most: int) -> int:
    return session.scalar(select(func.count()).select_from(rows.limit(most).subquery())) or 0


def make_due(session: Session, export_id: UUID) -> None:
    """Leave an export that nobody was told of to the sweep, at once."""
    session.execute(
        update(Export)
        .where(Export.id == export_id, Export.state == ExportState.QUEUED)
        .values(deliveries=0, dispatch_after=func.now())
    )


def claim(
    session: Session, export_id: UUID, *, worker: str, lease_s: float, max_attempts: int
) -> ExportClaim | None:
    """Take a queued export, or one whose worker's lease ended; None: nothing to do here.

    One that has used up ``max_attempts`` is left to the sweep, which gives it up.
    """
    document_id = session.scalar(select(Export.document_id).where(Export.id == export_id))
    if document_id is None:
        return None
    # Whoever deletes the document at this moment sees this export run, or is seen.
    documents.lock(session, document_id)
    lease_end = func.now() + timedelta(seconds=lease_s)
    row = session.execute(
        update(Export)
        .where(
            Export.id == export_id,
            _is_free(),
            Export.attempt - Export.excused < max_attempts,
            Document.id == Export.document_id,
            Document.state != DocumentState.DELETING,
        )
        .values(
            state=ExportState.RUNNING,
            attempt=Export.attempt + 1,
            worker=worker,
            lease_expires_at=lease_end,
            dispatch_after=lease_end,
            # Messages do arrive: the next wait begins anew.
            deliveries=case((Export.attempt > 0, 0), else_=Export.deliveries),
        )
        .returning(
            Export.document_id, Export.generation, Export.attempt, Export.format, Export.pages
        )
        .execution_options(synchronize_session=False)
    ).one_or_none()
    return row and ExportClaim(export_id, *row)


def is_held(session: Session, claim: ExportClaim, *, worker: str) -> bool:
    """Say whether a claim is this worker's, after whatever is being committed of it."""
    held = select(Export.id).where(*_is_held_by(claim), Export.worker == worker)
    return session.scalar(held.with_for_update()) is not None


def is_finished(session: Session, claim: ExportClaim, *, result_key: str) -> bool:
    """Say whether this object is the export, after whatever is being committed of it."""
    published = select(Export.id).where(
        Export.id == claim.export_id, Export.result_key == result_key
    )
    return session.scalar(published.with_for_update()) is not None


def renew(session: Session, claim: ExportClaim, *, lease_s: float) -> None:
    """Extend the lease.

    Raises:
        StaleStateError: another worker has the export by now, or it is gone.
    """
    lease_end = func.now() + timedelta(seconds=lease_s)
    _set_once(session, claim, {"lease_expires_at": lease_end, "dispatch_after": lease_end})


def require_held(session: Session, claim: ExportClaim) -> None:
    """Ask, without extending the lease, whether the claim still stands.

    Raises:
        StaleStateError: the document is being deleted, or another worker has the export.
    """
    held = select(Export.id).where(
        *_is_held_by(claim),
        Document.id == Export.document_id,
        Document.state != DocumentState.DELETING,
    )
    if session.scalar(held) is None:
        raise StaleStateError(f"export {claim.export_id} is held by nobody or another attempt")


def put_back(session: Session, claim: ExportClaim, *, delay_s: float, is_excused: bool) -> None:
    """Give an export back, to be sent again after ``delay_s`` seconds; see ``chunks.put_back``.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    _set_once(
        session,
        claim,
        {
            "state": ExportState.QUEUED,
            "excused": Export.excused + int(is_excused),
            "lease_expires_at": None,
            "worker": None,
            "dispatch_after": func.now() + timedelta(seconds=delay_s),
        },
    )


def finish(session: Session, claim: ExportClaim, *, result_key: str, size_bytes: int) -> None:
    """Make an object the export.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    _set_once(
        session,
        claim,
        {
            "state": ExportState.SUCCEEDED,
            "result_key": result_key,
            "result_size_bytes": size_bytes,
            "error_code": None,
            "finished_at": func.now(),
            **_FINAL,
        },
    )


def fail(session: Session, claim: ExportClaim, *, code: str, detail: str) -> None:  # noqa: ARG001 - the code says it all, and this is what claimed rows have
    """End an export as failed.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    values = {"state": ExportState.FAILED, "error_code": code, "finished_at": func.now()}
    _set_once(session, claim, {**values, **_FINAL})


def give_up(session: Session, export_id: UUID, *, code: str, max_attempts: int) -> bool:
    """End an export that no worker could make; return whether it was still to be ended."""
    row = session.execute(
        update(Export)
        .where(Export.id == export_id, _is_free(), Export.attempt - Export.excused >= max_attempts)
        .values(
            state=ExportState.FAILED,
            error_code=code,
            # A worker that was only slow finds its token outdated.
            attempt=Export.attempt + 1,
            finished_at=func.now(),
            **_FINAL,
        )
        .returning(Export.id)
    ).one_or_none()
    return row is not None


def _is_free() -> ColumnElement[bool]:
    return or_(
        Export.state == ExportState.QUEUED,
        and_(Export.state == ExportState.RUNNING, Export.lease_expires_at < func.now()),
    )


def _is_held_by(claim: ExportClaim) -> tuple[ColumnElement[bool], ...]:
    return (
        Export.id == claim.export_id,
        Export.state == ExportState.RUNNING,
        Export.attempt == claim.attempt,
    )


def _set_once(session: Session, claim: ExportClaim, values: Mapping[str, Any]) -> None:
    statement: Update = update(Export).where(*_is_held_by(claim)).values(**values)
    if session.execute(statement.returning(Export.id)).one_or_none() is None:
        raise StaleStateError(f"export {claim.export_id} is held by another attempt")
