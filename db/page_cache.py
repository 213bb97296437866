"""Pages of one tenant that were read before: found by their content, and served again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session, aliased

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


_LOOKED_AT: Final = 8


@dataclass(frozen=True, slots=True)
class EarlierPage:
    """A page that can serve others."""

    document_id: UUID
    page_index: int
    place: PagePlace
    columns: Mapping[str, Any]


def find(session: Session, content_key: bytes) -> EarlierPage | None:
    """Return the oldest page with this key, of a document that is not being deleted.

    Only a few are looked at: where many documents with the page are deleted at once, a miss costs
    less than a way past all of them.
    """
    # The order is that of the index: without it, what many pages share might be looked for row by
    # row in the whole table.
    first = (
        select(Page)
        .where(Page.content_key == content_key, Page.state == PageState.OK)
        .order_by(Page.content_key, Page.document_id, Page.page_index)
        .limit(_LOOKED_AT)
        .subquery()
    )
    candidate = aliased(Page, first)
    page = session.scalars(
        select(candidate)
        .join(Document, Document.id == candidate.document_id)
        .where(Document.state != DocumentState.DELETING)
        .order_by(candidate.document_id, candidate.page_index)
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
