"""Serve a page from an earlier one of the same picture, models and tenant, unread.

Its result is copied into the object of the chunk that asks, so that deleting one document takes
nothing from another. Only pages that were recognized are looked for: the others cost next to
nothing. Documents of the same bytes are served whole, and earlier; see ``workers.content_cache``.
"""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Protocol

import structlog

from db import page_cache
from db.chunks import PageRecord
from db.engine import Transaction
from db.states import PageState
from storage.object_store import ObjectStore
from workers.earlier_pages import EarlierPagesLostError, read_earlier
from workers.ocr.page_content import READING, page_digest
from workers.ocr.page_image import PageFailure
from workers.ocr.page_numbers import page_number
from workers.ocr.rendered_page import DRAWN_ROUTES, RenderedPage
from workers.ocr.result import PageResult, StageSeconds, seconds_json
from workers.page_outcome import PageOutcome, outcome_of
from workers.work_metrics import count_page_lookup

log = structlog.get_logger(__name__)


class Reader(Protocol):
    """What reads pages; ``workers.ocr.page_reader.PageReader``."""

    @property
    def model_version(self) -> str: ...

    def read_pages(
        self, pages: Iterable[RenderedPage | PageFailure]
    ) -> Iterator[PageResult | PageFailure]: ...


class PageCache:
    """Looks for earlier pages, and copies their results.

    Args:
        store: of the page results.
        transaction: opens a transaction.
    """

    def __init__(self, store: ObjectStore, *, transaction: Transaction) -> None:
        self._store = store
        self._transaction = transaction

    def read_pages(
        self, pages: Iterable[RenderedPage | PageFailure], reader: Reader, *, tenant: str
    ) -> Iterator[PageOutcome]:
        """Read pages, but those that the same reader has read for this tenant.

        Args:
            pages: drawn one by one.
            reader: of those that are not found.
            tenant: whose they are.

        Yields:
            For each page, in the order given, its result or its failure.

        Errors of ``reader.read_pages`` pass through, ``StorageUnavailableError`` and those of
        ``db.errors`` too.
        """
        yield from _Run(self, reader, tenant).read(pages)

    def serve(self, page: RenderedPage, key: bytes) -> PageOutcome | None:
        """Give a page what came of an earlier one of the same key; None: it has to be read."""
        with self._transaction() as session:
            earlier = page_cache.find(session, key)
        if earlier is None:
            return None
        try:
            _, (body,) = read_earlier(self._store, [earlier.place])
        except EarlierPagesLostError:
            log.warning("an earlier page is lost", earlier=str(earlier.document_id))
            with self._transaction() as session:
                page_cache.forget(session, earlier)
            return None
        seconds = StageSeconds(render=page.render_s)
        values = {**earlier.columns, "durations": asdict(seconds), "content_key": key}
        return PageOutcome(
            PageRecord(page.page_index, PageState.OK, values),
            {
                **body,
                "page_number": page_number(page.page_index),
                "seconds": seconds_json(seconds),
                "cached": True,
            },
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """A page's place in the order: a page that was served, or the key of one to be read."""

    served: PageOutcome | None = None
    content_key: bytes | None = None


class _Run:
    """Pages of one chunk on their way: some past the reader, and the others through it.

    The reader takes pages ahead, and gives them back in the order in which it took them; so its
    next result is always that of the first place that nobody was served.
    """

    def __init__(self, cache: PageCache, reader: Reader, tenant: str) -> None:
        self._cache = cache
        self._reader = reader
        self._tenant = tenant
        self._places: deque[_Place] = deque()  # in the order given, up to what the reader has taken
        self._asked = 0
        self._hits = 0

    def read(self, pages: Iterable[RenderedPage | PageFailure]) -> Iterator[PageOutcome]:
        for result in self._reader.read_pages(self._unserved(pages)):
            yield from self._ready()
            key = self._places.popleft().content_key
            yield outcome_of(
                result, self._reader.model_version, content_key=key if _is_whole(result) else None
            )
        yield from self._ready()
        log.info("page cache asked", asked=self._asked, hits=self._hits)

    def _unserved(
        self, pages: Iterable[RenderedPage | PageFailure]
    ) -> Iterator[RenderedPage | PageFailure]:
        """Take places for pages, and pass on those that have to be read."""
        for page in pages:
            place = self._place_of(page)
            self._places.append(place)
            if place.served is None:
                yield page

    def _place_of(self, page: RenderedPage | PageFailure) -> _Place:
        if isinstance(page, PageFailure) or page.decision.route not in DRAWN_ROUTES:
            return _Place()
        key = content_key(page, self._reader.model_version, self._tenant)
        served = self._cache.serve(page, key)
        self._asked += 1
        self._hits += served is not None
        count_page_lookup(is_hit=served is not None)
        return _Place(served, key)

    def _ready(self) -> Iterator[PageOutcome]:
        """Take the pages that were served before the next one that has to be read."""
        while self._places and (served := self._places[0].served) is not None:
            self._places.popleft()
            yield served


def content_key(page: RenderedPage, model_version: str, tenant: str) -> bytes:
    """Return what is equal for pages of a tenant that models of this version read alike."""
    parts = f"{READING}\n{model_version}\n{tenant}\n".encode()
    return hashlib.sha256(parts + page_digest(page)).digest()


def _is_whole(result: PageResult | PageFailure) -> bool:
    return isinstance(result, PageResult) and not (result.is_truncated or result.warnings)
