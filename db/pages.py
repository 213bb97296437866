"""The ledger of pages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import Page
from db.states import PageState


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where the result of a page lies: the bytes ``start`` to ``stop`` of an object."""

    result_key: str
    start: int
    stop: int


def list_of_document(session: Session, document_id: UUID) -> Sequence[Page]:
    """Return all pages of a document in page order."""
    return session.scalars(
        select(Page).where(Page.document_id == document_id).order_by(Page.page_index)
    ).all()


def list_page(
    session: Session, document_id: UUID, *, after_index: int, limit: int
) -> Sequence[Page]:
    """Return up to ``limit`` pages in page order, from the one after ``after_index``."""
    return session.scalars(
        select(Page)
        .where(Page.document_id == document_id, Page.page_index > after_index)
        .order_by(Page.page_index)
        .limit(limit)
    ).all()


def count_by_state(
    session: Session, document_ids: Collection[UUID]
) -> Mapping[UUID, Mapping[PageState, int]]:
    """Count the pages of each document by state; a document without pages is left out."""
    if not document_ids:
        return {}
    counts: dict[UUID, dict[PageState, int]] = {}
    for document_id, state, count in session.execute(
        select(Page.document_id, Page.state, func.count())
        .where(Page.document_id.in_(document_ids))
        .group_by(Page.document_id, Page.state)
    ):
        counts.setdefault(document_id, {})[PageState(state)] = count
    return counts
