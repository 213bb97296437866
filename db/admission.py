"""How much work is open, how fast it ends, and what a key has sent: in pages and pixels.

What is open is counted from the documents themselves, so that no counter can part from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import BigInteger, Date, and_, cast, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.key_models import ApiKey, KeyUsage
from db.models import Chunk, Document
from db.states import OPEN_DOCUMENT_STATES, ChunkState, Priority


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Documents that are not final, and their pages and pixels; ``oldest_s``: None without any."""

    documents: int = 0
    pages: int = 0
    pixels: int = 0
    oldest_s: float | None = None


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What a key may have and has; a quota of None is none.

    Attributes:
        max_open_pages: of its documents that are not final.
        max_pages_per_day: that it sends on one day, in UTC.
        open_pages: None where there is no quota of them: counting takes time.
        pages_today: above the quota when a document turned out larger than guessed.
        documents_today: likewise, without a quota.
    """

    max_open_pages: int | None = None
    max_pages_per_day: int | None = None
    open_pages: int | None = None
    pages_today: int = 0
    documents_today: int = 0

    @property
    def has_used_up_today(self) -> bool:
        return self.max_pages_per_day is not None and self.pages_today >= self.max_pages_per_day

    @property
    def has_used_up_open(self) -> bool:
        return self.max_open_pages is not None and (self.open_pages or 0) >= self.max_open_pages

    @property
    def is_used_up(self) -> bool:
        return self.has_used_up_today or self.has_used_up_open

    @property
    def pages_left(self) -> int | None:
        """How many pages the key may still send now; None: as many as it likes."""
        left = []
        if self.max_open_pages is not None:
            left.append(self.max_open_pages - (self.open_pages or 0))
        if self.max_pages_per_day is not None:
            left.append(self.max_pages_per_day - self.pages_today)
        return max(min(left), 0) if left else None


def open_work(session: Session) -> Mapping[Priority, OpenWork]:
    """Count what is open of each priority; reads one index, in time with what is open."""
    rows = session.execute(
        select(
            Document.priority,
            func.count(),
            func.sum(Document.page_estimate),
            func.sum(Document.pixel_estimate),
            func.extract("epoch", func.now() - func.min(Document.created_at)),
        )
        .where(Document.state.in_(sorted(OPEN_DOCUMENT_STATES)))
        .group_by(Document.priority)
    )
    found = {
        Priority(priority): OpenWork(documents, int(pages), int(pixels), float(oldest_s))
        for priority, documents, pages, pixels, oldest_s in rows
    }
    return {priority: found.get(priority, OpenWork()) for priority in Priority}


def pages_in_flight(session: Session) -> int:
    """Count the pages of the chunks that workers hold."""
    return int(
        session.scalar(
            select(func.coalesce(func.sum(Chunk.page_stop - Chunk.page_start), 0)).where(
                Chunk.state == ChunkState.RUNNING
            )
        )
        or 0
    )


def pages_finished(session: Session, *, window_s: float) -> int:
    """Count the pages of the documents that became final in the last ``window_s`` seconds."""
    return int(
        session.scalar(
            select(func.coalesce(func.sum(Document.page_estimate), 0)).where(
                Document.finished_at > func.now() - timedelta(seconds=window_s)
            )
        )
        or 0
    )


def key_use(session: Session, *, tenant: str, key_id: str) -> KeyUse:
    """Return the quotas of a key and what it has used of them; nothing for a key that is gone."""
    found = session.execute(
        select(
            ApiKey.max_open_pages,
            ApiKey.max_pages_per_day,
            func.coalesce(KeyUsage.pages, 0).label("pages"),
            func.coalesce(KeyUsage.documents, 0).label("documents"),
        )
        .outerjoin(KeyUsage, and_(KeyUsage.key_id == ApiKey.id, KeyUsage.day == _TODAY))
        .where(ApiKey.id == key_id)
    ).one_or_none()
    if found is None:
        return KeyUse()
    return KeyUse(
        found.max_open_pages,
        found.max_pages_per_day,
        None if found.max_open_pages is None else _open_pages(session, tenant, key_id),
        found.pages,
        found.documents,
    )


def charge(session: Session, document: Document) -> KeyUse:
    """Count a document that was just inserted to its key; see ``charge_all``."""
    return charge_all(session, [document])


def charge_all(session: Session, added: Sequence[Document]) -> KeyUse:
    """Count documents of one key that were just inserted to it, and return its use before them.

    Documents of one key are counted one after the other, from here to the end of the transaction,
    so that of two that are added at once one sees the other. The transaction must be rolled back
    where a quota was used up before.
    """
    if not added or added[0].key_id is None:
        return KeyUse()
    key_id, tenant = added[0].key_id, added[0].tenant
    added_pages = sum(document.page_estimate for document in added)
    # The key's row and not only that of the day: at midnight there are two of those.
    quota = session.execute(
        select(ApiKey.max_open_pages, ApiKey.max_pages_per_day)
        .where(ApiKey.id == key_id)
        .with_for_update(key_share=True)
    ).one_or_none()
    if quota is None:
        return KeyUse()
    usage = insert(KeyUsage).values(
        key_id=key_id, day=_TODAY, pages=added_pages, documents=len(added)
    )
    pages, documents = session.execute(
        usage.on_conflict_do_update(
            index_elements=["key_id", "day"],
            set_={
                "pages": KeyUsage.pages + usage.excluded.pages,
                "documents": KeyUsage.documents + usage.excluded.documents,
            },
        ).returning(KeyUsage.pages, KeyUsage.documents)
    ).one()
    open_pages = None
    if quota.max_open_pages is not None:
        open_pages = _open_pages(session, tenant, key_id) - added_pages
    return KeyUse(
        quota.max_open_pages,
        quota.max_pages_per_day,
        open_pages,
        pages - added_pages,
        documents - len(added),
    )


def real_pages(page_count: int, wanted_count: int) -> Mapping[str, Any]:
    """Return what a document's row says once its pages are counted, and those that are wanted."""
    return {"page_count": page_count, **pages_to_read(wanted_count)}


def pages_to_read(page_count: int) -> Mapping[str, Any]:
    """Return how much work a document's row says that it is; pixels grow as pages do."""
    return {
        "page_estimate": page_count,
        "pixel_estimate": Document.pixel_estimate
        * cast(page_count, BigInteger)
        / func.greatest(Document.page_estimate, 1),
    }


def correct_usage(session: Session, document: Document, *, pages_more: int) -> None:
    """Count to the key by how many pages a document is larger, or smaller, than was guessed.

    It may go over its quota by that: the document is read all the same, and the key sends nothing
    more before the quota allows it again.
    """
    if document.key_id is None or pages_more == 0:
        return
    session.execute(
        update(KeyUsage)
        .where(KeyUsage.key_id == document.key_id, KeyUsage.day == document.created_at.date())
        .values(pages=KeyUsage.pages + pages_more)
    )


# Sessions run in UTC; see db.engine.
_TODAY = cast(func.now(), Date)


def _open_pages(session: Session, tenant: str, key_id: str) -> int:
    return int(
        session.scalar(
            select(func.coalesce(func.sum(Document.page_estimate), 0)).where(
                Document.tenant == tenant,
                Document.key_id == key_id,
                Document.state.in_(sorted(OPEN_DOCUMENT_STATES)),
            )
        )
        or 0
    )
