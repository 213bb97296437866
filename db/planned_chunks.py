"""Chunks before they are rows: which pages each has, and how they become work that waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.ids import new_id
from db.models import Chunk, Document
from db.states import ChunkState


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    """A chunk before it is a row; the page range is half-open and 0-based."""

    id: UUID
    page_start: int
    page_stop: int


def plan_chunks(page_indexes: Sequence[int], *, chunk_pages: int) -> list[PlannedChunk]:
    """Cut ascending page indexes into ranges without gaps of at most ``chunk_pages`` pages."""
    planned: list[PlannedChunk] = []
    for index in page_indexes:
        last = planned[-1] if planned else None
        if last and last.page_stop == index and index - last.page_start < chunk_pages:
            planned[-1] = PlannedChunk(last.id, last.page_start, index + 1)
        else:
            planned.append(PlannedChunk(new_id(), index, index + 1))
    return planned


def insert(
    session: Session,
    document: Document,
    planned: Sequence[PlannedChunk],
    *,
    chord_grace_s: float | None = None,
    is_isolated: bool = False,
) -> None:
    """Write the rows of chunks, which are their own outbox.

    Args:
        session: an open transaction.
        document: theirs, in the generation that they belong to.
        planned: their ids and pages.
        chord_grace_s: seconds after which the sweep sends what a chord, which is about to be
            sent, has not started; None: the sweep sends them, from now on.
        is_isolated: whether each is a page that is tried alone.
    """
    dispatch_after = session.scalar(select(func.now() + timedelta(seconds=chord_grace_s or 0)))
    session.bulk_insert_mappings(
        Chunk.__mapper__,
        [
            {
                "id": chunk.id,
                "document_id": document.id,
                "generation": document.generation,
                "tenant": document.tenant,
                "lane": document.lane,
                "priority": document.priority,
                "page_start": chunk.page_start,
                "page_stop": chunk.page_stop,
                "state": ChunkState.QUEUED,
                "is_isolated": is_isolated,
                "deliveries": int(chord_grace_s is not None),
                "dispatch_after": dispatch_after,
            }
            for chunk in planned
        ],
    )
