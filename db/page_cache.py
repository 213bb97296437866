"""Pages of one tenant that were read before: found by their content, and served again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.models import Document, Page
from db.pages import PagePlace
from db.states import DocumentState, PageState

KEPT_COLUMNS: Final = (
    "route",
    "crops_found",
    "crops_kept",
    "truncated",
    "line_count",
    "mean_confidence",
    "rotation_deg",
    "model_version",
    "content_key",
)
"""What is known of a page wherever its result lies, and however long its reading took."""


@dataclass(frozen=True, slots=True)
class EarlierPage:
    """A page that can serve others."""

    document_id: UUID
    page_index: int
    place: PagePlace
    columns: Mapping[str, Any]


def find(session: Session, content_key: bytes) -> EarlierPage | None:
    """Return a page with this key, of a document that is not being deleted."""
    page = session.scalars(
        select(Page)
        .join(Document, Document.id == Page.document_id)
        .where(
            Page.content_key == content_key,
            Page.state == PageState.OK,
            Document.state != DocumentState.DELETING,
        )
        .limit(1)
    ).one_or_none()
    if page is None or page.result_key is None:
        return None
    return EarlierPage(
        page.document_id,
        page.page_index,
        PagePlace(page.result_key, page.result_start or 0, page.result_stop or 0),
        {name: getattr(page, name) for name in KEPT_COLUMNS},
    )


def forget(session: Session, earlier: EarlierPage) -> None:
    """Let a page serve no other: its object is gone."""
    session.execute(
        update(Page)
        .where(
            Page.document_id == earlier.document_id,
            Page.page_index == earlier.page_index,
            Page.result_key == earlier.place.result_key,
        )
        .values(content_key=None)
    )
