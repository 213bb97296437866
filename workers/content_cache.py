"""Serve a document from an earlier one of the same content, options and models, unread.

The pages are copied, so that each document owns what it shows, and deleting one takes nothing from
another. Only documents of the same tenant serve each other, and only whole ones.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import structlog

from db import content_cache, known_outcome
from db.content_cache import Earlier
from db.documents import DocumentClaim
from db.engine import Transaction
from db.models import Page
from db.pages import PagePlace
from db.states import PageState
from storage import keys
from storage.object_store import ObjectStore
from workers.earlier_pages import EarlierPagesLostError, read_earlier
from workers.ocr.options import OcrOptions
from workers.ocr.page_content import READING

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Content:
    """What is to be read, for whom, and how; ``sha256`` in lower-case hex."""

    tenant: str
    sha256: str
    options: OcrOptions


def content_key(content: Content, model_version: str) -> str:
    """Return what is equal for documents of a tenant that give the same pages."""
    parts = (str(READING), content.sha256, content.options.reading_digest(), model_version)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class ContentCache:
    """Looks for earlier documents, and copies their pages.

    Args:
        store: of the page results.
        transaction: opens a transaction.
        bundle: name and hash of the models that this machine's settings choose; an earlier result
            of others is not served, even while no slot has started with these. None: not known.
    """

    def __init__(
        self, store: ObjectStore, *, transaction: Transaction, bundle: str | None = None
    ) -> None:
        self._store = store
        self._transaction = transaction
        self._bundle = bundle

    def serve(
        self,
        claim: DocumentClaim,
        content: Content,
        *,
        check: Callable[[], None],
        assemble_after_s: float,
    ) -> int | None:
        """Give a document that is being split the pages of an earlier one.

        Args:
            claim: of the split.
            content: of the document.
            check: is called between two objects; what it raises ends the copy.
            assemble_after_s: seconds after which the sweep sends the assembly.

        Returns:
            How many pages it has, and the document waits for its assembly; None: it has to be read.

        Raises:
            ExceedsMaxPagesError: the document has more pages than its options allow.
            StorageError: the store does not do its part.
            StaleStateError: the claim is no longer ours.
        """
        earlier = self._find(claim, content)
        if earlier is None:
            log.info("cache asked", is_hit=False)
            return None
        content.options.page_indexes(len(earlier.pages))
        try:
            places = self._copied(claim, earlier.pages, check)
        except EarlierPagesLostError:
            log.warning("pages of an earlier document are lost", earlier=str(earlier.document_id))
            with self._transaction() as session:
                content_cache.forget(session, earlier.document_id)
            return None
        is_hit = known_outcome.commit(
            self._transaction,
            lambda session: content_cache.serve(
                session, claim, earlier, places, assemble_after_s=assemble_after_s
            ),
            stands=lambda session, is_served: (
                not is_served or content_cache.is_served(session, claim)
            ),
        )
        log.info("cache asked", is_hit=is_hit, earlier=str(earlier.document_id), pages=len(places))
        return len(places) if is_hit else None

    def _find(self, claim: DocumentClaim, content: Content) -> Earlier | None:
        with self._transaction() as session:
            models = content_cache.current_models(session)
            if models is None or self._bundle not in {None, models.partition("+")[0]}:
                return None
            return content_cache.find(
                session,
                tenant=content.tenant,
                content_key=content_key(content, models),
                besides=claim.document_id,
            )

    def _copied(
        self, claim: DocumentClaim, pages: Sequence[Page], check: Callable[[], None]
    ) -> list[PagePlace | None]:
        """Copy the results of pages, object by object; return where each lies now.

        Errors of ``read_earlier`` pass through, and those of writing.
        """
        places: list[PagePlace | None] = []
        for number, (result_key, group) in enumerate(groupby(pages, lambda page: page.result_key)):
            rows = list(group)
            if any(row.state == PageState.SKIPPED for row in rows):
                places += [None] * len(rows)
                continue
            check()
            places += self._copied_object(
                result_key or "",
                rows,
                keys.cached_pages_key(claim.document_id, claim.attempt, number),
            )
        return places

    def _copied_object(self, source: str, rows: Sequence[Page], target: str) -> list[PagePlace]:
        places = [PagePlace(source, row.result_start or 0, row.result_stop or 0) for row in rows]
        body, _ = read_earlier(self._store, places)
        self._store.put(target, body, media_type=keys.PAGES_MEDIA_TYPE)
        start = places[0].start
        return [PagePlace(target, each.start - start, each.stop - start) for each in places]
