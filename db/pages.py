"""The ledger of pages."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import Page


def list_of_document(session: Session, document_id: UUID) -> Sequence[Page]:
    """Return all pages of a document in page order."""
    return session.scalars(
        select(Page).where(Page.document_id == document_id).order_by(Page.page_index)
    ).all()
