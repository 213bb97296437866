"""Documents of one tenant that were read before: found by their content, and served again.

A document that was read whole bears a ``content_key``, over its bytes, its options and the models
that read it. Whoever has the same key needs no reading: its pages are those of the earlier one, in
objects of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db import admission, documents, page_cache, pages
from db.documents import DocumentClaim
from db.models import Document, Page, ReadingModel
from db.pages import PagePlace
from db.states import DocumentState, PageState


@dataclass(frozen=True, slots=True)
class Earlier:
    """A document that can serve another; ``read_at`` is when its pages were really read."""

    document_id: UUID
    read_at: datetime
    pages: Sequence[Page]


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How many documents became final, and how much of them was served and not read.

    ``served_pages`` are of documents that were read themselves, but for these pages.
    """

    finished: int = 0
    served: int = 0
    served_pages: int = 0


def note_models(session: Session, model_version: str) -> None:
    """Say that a slot that reads with these models starts now."""
    added = insert(ReadingModel).values(model_version=model_version, started_at=func.now())
    session.execute(
        added.on_conflict_do_update(
            index_elements=["model_version"], set_={"started_at": added.excluded.started_at}
        )
    )


def current_models(session: Session) -> str | None:
    """Return the models of the slot that started last, in the whole fleet; None: none ever did."""
    return session.scalar(
        select(ReadingModel.model_version).order_by(ReadingModel.started_at.desc()).limit(1)
    )


def find(session: Session, *, tenant: str, content_key: str, besides: UUID) -> Earlier | None:
    """Return the oldest document of a tenant with this key, other than ``besides``."""
    document = session.scalars(
        select(Document)
        .where(
            Document.tenant == tenant,
            Document.content_key == content_key,
            Document.state == DocumentState.SUCCEEDED,
            Document.id != besides,
        )
        .order_by(Document.id)
        .limit(1)
    ).one_or_none()
    if document is None:
        return None
    read_at = document.read_at or document.finished_at
    if read_at is None:
        return None
    return Earlier(document.id, read_at, pages.list_of_document(session, document.id))


def forget(session: Session, document_id: UUID) -> None:
    """Let a document serve no other: its objects are gone."""
    session.execute(update(Document).where(Document.id == document_id).values(content_key=None))


def serve(
    session: Session,
    claim: DocumentClaim,
    earlier: Earlier,
    places: Sequence[PagePlace | None],
    *,
    assemble_after_s: float,
) -> bool:
    """Give a document that is being split the pages of an earlier one; it is assembled next.

    Args:
        session: an open transaction.
        claim: of the split.
        earlier: as ``find`` returned it.
        places: where the document's own copy of each page's result lies; None: it was left out.
        assemble_after_s: seconds after which the sweep sends the assembly.

    Returns:
        False: the earlier document was deleted meanwhile, and nothing was changed.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    # Without a lock, so that two documents are never locked by one transaction: whoever deletes the
    # earlier one after this statement comes after this transaction, which has copies of its own.
    still_there = select(Document.id).where(
        Document.id == earlier.document_id, Document.state == DocumentState.SUCCEEDED
    )
    if session.scalar(still_there) is None:
        return False
    rows = [
        {
            "page_index": page.page_index,
            **({"state": PageState.SKIPPED} if place is None else _read_page(page, place)),
        }
        for page, place in zip(earlier.pages, places, strict=True)
    ]
    document, pages_more = documents.leave_split(
        session,
        claim,
        page_rows=rows,
        values={
            "by_chord": False,
            "dispatch_after": func.now() + timedelta(seconds=assemble_after_s),
            "cached_from": earlier.document_id,
            "read_at": earlier.read_at,
        },
    )
    admission.correct_usage(session, document, pages_more=pages_more)
    return True


def is_served(session: Session, claim: DocumentClaim) -> bool:
    """Say whether ``serve`` stands, after whatever is being committed of the document."""
    return documents.locked_value(session, claim, Document.cached_from) is not None


def cache_use(session: Session, *, window_s: float) -> CacheUse:
    """Count what became final in the last ``window_s`` seconds."""
    recent = Document.finished_at > func.now() - timedelta(seconds=window_s)
    count = select(func.count()).select_from(Document).where(recent)
    return CacheUse(
        finished=session.scalar(count) or 0,
        served=session.scalar(count.where(Document.cached_from.is_not(None))) or 0,
        served_pages=session.scalar(
            select(func.sum(Document.pages_cached)).where(
                recent, Document.pages_cached > 0, Document.cached_from.is_(None)
            )
        )
        or 0,
    )


def _read_page(page: Page, place: PagePlace) -> dict[str, object]:
    return {
        "state": PageState.OK,
        "result_key": place.result_key,
        "result_start": place.start,
        "result_stop": place.stop,
        **{name: getattr(page, name) for name in (*page_cache.KEPT_COLUMNS, "durations")},
    }
