"""What a batch came to, document by document, in the order of their ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import Document
from db.states import DocumentState


@dataclass(frozen=True, slots=True)
class ReportedDocument:
    """One document of a batch; ``pages`` is None until it is split.

    ``bucket`` is that of the user's object that it is of, and ``key`` the object's; of an upload
    the first is None, and the second our own. ``error_detail`` stands in place of what the error
    code says for all.
    """

    id: UUID
    external_id: str | None
    filename: str
    state: str
    pages: int | None
    pages_ok: int
    pages_failed: int
    error_code: str | None
    created_at: datetime
    finished_at: datetime | None
    has_result: bool
    size_bytes: int
    sha256: str
    is_cached: bool
    metadata: dict[str, Any] | None
    bucket: str | None
    key: str | None
    error_detail: str | None

    @property
    def seconds(self) -> float | None:
        """From its acceptance to its end; None while it is open."""
        if self.finished_at is None:
            return None
        return round((self.finished_at - self.created_at).total_seconds(), 3)


def read_page(
    session: Session, batch_id: UUID, *, after: UUID | None, limit: int
) -> Sequence[ReportedDocument]:
    """Return up to ``limit`` documents of a batch, oldest first, from the one after ``after``."""
    query = select(
        Document.id,
        Document.external_id,
        Document.filename,
        Document.state,
        Document.page_count,
        Document.pages_ok,
        Document.pages_failed,
        Document.error_code,
        Document.created_at,
        Document.finished_at,
        Document.result_key.is_not(None),
        Document.size_bytes,
        Document.sha256,
        Document.cached_from.is_not(None),
        Document.user_metadata,
        Document.source["bucket"].astext,
        Document.source["key"].astext,
        Document.error_detail,
    ).where(Document.batch_id == batch_id, Document.state != DocumentState.DELETING)
    if after is not None:
        query = query.where(Document.id > after)
    rows = session.execute(query.order_by(Document.id).limit(limit)).all()
    return [ReportedDocument(*tuple(row)) for row in rows]
