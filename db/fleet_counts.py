"""What waits, runs and has ended lately, in the whole system: for those who watch it.

Five statements, each by an index of the rows that are open or young: none reads a whole archive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.due_rows import Work
from db.states import OPEN_DOCUMENT_STATES, ChunkState, DocumentState, Priority

# Ids begin with the milliseconds since 1970 of their creation (UUIDv7): 12 hexadecimal digits.
_AGE_OF_ID = """
    extract(epoch FROM now())
    - ('x' || lpad(left(replace(min(id::text), '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0
"""

_DOCUMENTS = text("""
    SELECT state, priority, dispatch_after IS NOT NULL AS is_due,
      count(*) AS documents, sum(page_estimate) AS pages,
      extract(epoch FROM now() - min(created_at) FILTER (WHERE generation = 1)) AS oldest_s
    FROM documents
    WHERE state IN ('queued', 'splitting', 'recognizing', 'assembling')
    GROUP BY 1, 2, 3
""")
_CHUNKS = text(f"""
    SELECT state, priority, sum(page_stop - page_start) AS pages, {_AGE_OF_ID} AS oldest_s
    FROM chunks WHERE dispatch_after IS NOT NULL AND state IN ('queued', 'running')
    GROUP BY 1, 2
""")  # noqa: S608 - a constant of this module
_EXPORTS = text("""
    SELECT exports.priority, sum(coalesce(documents.page_count, 1)) AS pages,
      extract(epoch FROM now() - min(exports.created_at)) AS oldest_s
    FROM exports JOIN documents ON documents.id = exports.document_id
    WHERE exports.dispatch_after IS NOT NULL AND exports.state = 'queued'
    GROUP BY 1
""")
_FINISHED = text("""
    SELECT state, count(*) AS documents,
      count(*) FILTER (WHERE cached_from IS NOT NULL) AS from_cache,
      sum(pages_ok) AS ok, sum(pages_failed) AS failed, sum(pages_skipped) AS skipped,
      sum(CASE WHEN cached_from IS NULL THEN pages_cached ELSE pages_ok END) AS cached
    FROM documents
    WHERE finished_at > now() - make_interval(secs => :window_s)
    GROUP BY 1
""")
_WEBHOOKS = text("""
    SELECT count(*) AS waiting, coalesce(extract(epoch FROM now() - min(event_at)), 0) AS oldest_s
    FROM webhook_deliveries WHERE dispatch_after IS NOT NULL
""")


@dataclass(slots=True)
class Queue:
    """What waits for one kind of work.

    Attributes:
        pages: of all priorities.
        oldest_s: by priority; 0.0 where nothing waits, and where nobody knows since when.
    """

    pages: int = 0
    oldest_s: dict[Priority, float] = field(default_factory=lambda: dict.fromkeys(Priority, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCounts:
    """What there is; ``finished`` and what follows became final within the window.

    Attributes:
        queues: what waits to be split, recognized, assembled and exported.
        pages_in_flight: of chunks that workers hold.
        open_documents: by state.
        finished_documents: by state.
        finished_pages: by outcome; ``cached`` ones are of those that are ``ok``.
        documents_from_cache: of the finished ones, served from earlier documents.
        webhooks_waiting: messages that are to be sent, or sent again.
        webhooks_oldest_s: since what the oldest of these tells of.
    """

    queues: Mapping[Work, Queue]
    pages_in_flight: int
    open_documents: Mapping[DocumentState, int]
    finished_documents: Mapping[DocumentState, int]
    finished_pages: Mapping[str, int]
    documents_from_cache: int
    webhooks_waiting: int
    webhooks_oldest_s: float


PAGE_OUTCOMES = ("ok", "failed", "skipped", "cached")
FINAL_STATES = tuple(sorted(set(DocumentState) - OPEN_DOCUMENT_STATES - {DocumentState.DELETING}))


def count_fleet(session: Session, *, window_s: float) -> FleetCounts:
    """Count what there is; ``window_s`` is how far back what is final counts."""
    queues = {work: Queue() for work in Work}
    open_documents = dict.fromkeys(sorted(OPEN_DOCUMENT_STATES), 0)
    for row in session.execute(_DOCUMENTS):
        open_documents[DocumentState(row.state)] += row.documents
        if row.state == DocumentState.QUEUED:
            _add(queues[Work.SPLIT], row, oldest_s=row.oldest_s)
        elif row.state == DocumentState.RECOGNIZING and row.is_due:
            # When its last chunk ended is not written down.
            _add(queues[Work.ASSEMBLE], row, oldest_s=None)
    in_flight = 0
    for row in session.execute(_CHUNKS):
        if row.state == ChunkState.RUNNING:
            in_flight += row.pages
        else:
            _add(queues[Work.RECOGNIZE], row, oldest_s=row.oldest_s)
    for row in session.execute(_EXPORTS):
        _add(queues[Work.EXPORT], row, oldest_s=row.oldest_s)
    finished = session.execute(_FINISHED, {"window_s": window_s}).all()
    webhooks = session.execute(_WEBHOOKS).one()
    by_state = {row.state: row.documents for row in finished}
    return FleetCounts(
        queues=queues,
        pages_in_flight=in_flight,
        open_documents=open_documents,
        finished_documents={state: by_state.get(state, 0) for state in FINAL_STATES},
        finished_pages={
            outcome: sum(getattr(row, outcome) for row in finished) for outcome in PAGE_OUTCOMES
        },
        documents_from_cache=sum(row.from_cache for row in finished),
        webhooks_waiting=webhooks.waiting,
        webhooks_oldest_s=float(webhooks.oldest_s),
    )


def _add(queue: Queue, row: Any, *, oldest_s: Any) -> None:  # noqa: ANN401 - rows of statements
    queue.pages += row.pages
    if oldest_s is not None:
        priority = Priority(row.priority)
        queue.oldest_s[priority] = max(queue.oldest_s[priority], float(oldest_s))
