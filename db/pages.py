"""The ledger of pages."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import Page

_ROWS_AT_A_TIME = 1_000


def list_of_document(session: Session, document_id: UUID) -> Sequence[Page]:
    """Return all pages of a document in page order."""
    return session.scalars(
        select(Page).where(Page.document_id == document_id).order_by(Page.page_index)
    ).all()


def iterate(session: Session, document_id: UUID) -> Iterator[Page]:
    """Yield the pages of a document in page order, without holding all of them."""
    yield from session.scalars(
        select(Page)
        .where(Page.document_id == document_id)
        .order_by(Page.page_index)
        .execution_options(yield_per=_ROWS_AT_A_TIME)
    )
