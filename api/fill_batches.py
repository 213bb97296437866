"""Fill batches from what they name: page by page, each object once, on from wherever it stopped.

In a thread of ``pagefleet reconcile``: a prefix of a million objects outlasts any request. A page
of it is in memory at a time. Its documents, the notes of its objects and the place where the next
page begins are one transaction, so whoever dies in between is followed from there; several may run
at once. The documents are queued and due: the sweep sends them as the queues drain.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import structlog

from api.accept_document import PageLimits
from api.accept_source import document_of
from api.admission import Admission
from api.errors import ApiError
from api.listing_errors import ListingFailedError
from api.listing_lease import kept
from api.listing_pages import (
    LISTED_OBJECTS,
    LOOKS_AT_ONCE,
    Candidate,
    ListingPlan,
    Page,
    looking,
    named_entries,
    open_manifest,
    pages_of,
)
from api.object_fingerprint import fingerprint_of
from api.object_manifest import EntryRules, ReadSoFar
from api.place_settings import AllowedSources
from api.upload_form import DocumentFields, resolve_options
from db import admission as key_admission
from db import batch_objects, listings
from db.batch_objects import Fingerprint
from db.engine import Session, Transaction
from db.errors import DatabaseUnavailableError, OutcomeUnknownError, StaleStateError
from db.ids import new_id
from db.listings import Progress, TakenListing
from db.models import Document
from db.states import Priority
from storage import source_object
from storage.errors import StorageUnavailableError
from storage.object_store import ObjectStore
from storage.source_object import SourceObject

# What keeps a listing waiting lasts: a full system, or a quota that is used up.
_FULL_PAUSE_S = 30.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ListingRules:
    """How batches are filled.

    Attributes:
        allowed: whence documents may come.
        page_limits: of documents and pages.
        max_manifest_bytes: of a manifest.
        lease_s: for how long a listing is its holder's after the last word of that.
        renew_every_s: between two such words, while a turn lasts.
        retry_delay_s: how long it rests after a passing fault.
        max_failures: claims without a page after which it is given up.
        turn_s: after which another listing has its turn.
        page_objects: most that are entered in one transaction.
    """

    allowed: AllowedSources
    page_limits: PageLimits
    max_manifest_bytes: int
    lease_s: float
    renew_every_s: float
    retry_delay_s: float
    max_failures: int
    turn_s: float = 5.0  # short, as a batch of a hundred objects may wait behind many others
    page_objects: int = LISTED_OBJECTS


class _WaitingError(Exception):
    """There is no room for more documents now."""


@dataclass(frozen=True, slots=True)
class _Servers:
    transaction: Transaction
    store: ObjectStore
    admission: Admission
    executor: Executor


def fill_for_a_turn(
    stop: threading.Event,
    *,
    transaction: Transaction,
    store: ObjectStore,
    admission: Admission,
    rules: ListingRules,
) -> bool:
    """Go on with the listing whose turn it is, for a turn; return whether there was one.

    Args:
        stop: ends the turn behind the page that is being entered.
        transaction: opens a transaction.
        store: any bucket of the service.
        admission: knows how much more the system takes.
        rules: how batches are filled.

    Raises:
        DatabaseError: the database cannot be asked; the listing goes on when its lease has ended.
    """
    with transaction() as session:
        listing = listings.take(session, lease_s=rules.lease_s)
    if listing is None:
        return False
    with (
        structlog.contextvars.bound_contextvars(batch_id=str(listing.claim.batch_id)),
        looking(LOOKS_AT_ONCE) as executor,
    ):
        servers = _Servers(transaction, store, admission, executor)
        renew = partial(_renew, listing, transaction, lease_s=rules.lease_s)
        try:
            with kept(renew, every_s=rules.renew_every_s) as is_lost:
                is_finished = _Turn(listing, servers, rules, stop, is_lost).run()
            if not is_finished:
                _put_back(listing, transaction, delay_s=0, is_excused=True)
        except StaleStateError:
            log.info("listing was stopped, or taken over")
            with transaction() as session:
                listings.stop_if_cancelled(session, listing.claim.batch_id)
        except ListingFailedError as error:
            log.info("listing failed", code=error.code, cause=type(error.__cause__).__name__)
            with suppress(StaleStateError), transaction() as session:
                listings.fail(session, listing.claim, code=error.code, detail=error.detail)
        except _WaitingError:
            _put_back(listing, transaction, delay_s=_FULL_PAUSE_S, is_excused=True)
        except (StorageUnavailableError, DatabaseUnavailableError, OutcomeUnknownError) as error:
            log.warning("listing put back", error=type(error).__name__)
            _put_back(listing, transaction, delay_s=rules.retry_delay_s, is_excused=True)
        except Exception:
            # Of a thread that ended nobody would hear, and no batch would be filled any more.
            log.exception("listing broken off")
            _put_back(listing, transaction, delay_s=rules.retry_delay_s, is_excused=False)
    return True


def fill_until(
    stop: threading.Event,
    *,
    transaction: Transaction,
    store: ObjectStore,
    admission: Admission,
    rules: ListingRules,
    interval_s: float,
) -> None:
    """Go on with listings until ``stop`` is set, whatever happens in one of them."""
    while not stop.is_set():
        is_busy = False
        try:
            is_busy = fill_for_a_turn(
                stop, transaction=transaction, store=store, admission=admission, rules=rules
            )
        except DatabaseUnavailableError:
            log.warning("listings skipped, the database is not reachable")
        except Exception:
            # The thread must outlive any fault of one round.
            log.exception("listings broken off")
        if not is_busy:
            stop.wait(interval_s)


class _Turn:
    """One holder's way through a listing: to its end, or as far as its time goes."""

    def __init__(
        self,
        listing: TakenListing,
        servers: _Servers,
        rules: ListingRules,
        stop: threading.Event,
        is_lost: threading.Event,
    ) -> None:
        self._listing = listing
        self._servers = servers
        self._rules = rules
        self._stop = stop
        self._is_lost = is_lost
        self._ends_at = time.monotonic() + rules.turn_s
        self._options = resolve_options(listing.options, {})

    def run(self) -> bool:
        """Go on from where the listing is; return whether it came to its end.

        Raises:
            StaleStateError: somebody else has it, or its batch was closed.
            ListingFailedError: it ends here for good.
            _WaitingError: there is no room.
        """
        listing, servers = self._listing, self._servers
        if listing.failures > self._rules.max_failures:
            raise ListingFailedError("internal")
        self._pages_left()  # before anything is asked of the store
        plan = ListingPlan(
            listing.source,
            self._manifest(),
            EntryRules(self._rules.allowed, listing.tenant, listing.options),
            self._rules.page_objects,
        )
        cursor = listing.cursor
        if plan.manifest is not None and not listing.is_checked:
            if not self._check(plan, cursor):
                return False
            cursor = None
        for page in pages_of(plan, servers.store, servers.executor, cursor=cursor):
            self._enter(page)
            if self._is_over():
                return False
        with servers.transaction() as session:
            listings.finish(session, listing.claim)
        log.info("listing finished")
        return True

    def _manifest(self) -> SourceObject | None:
        """Return the manifest as it was when it was opened first; None: there is none."""
        listing, servers = self._listing, self._servers
        if listing.pinned is not None:
            return source_object.from_row(dict(listing.pinned))
        manifest = open_manifest(
            servers.store, listing.source, max_bytes=self._rules.max_manifest_bytes
        )
        if manifest is not None:
            with servers.transaction() as session:
                listings.pin(session, listing.claim, manifest.to_row())
        return manifest

    def _check(self, plan: ListingPlan, cursor: str | None) -> bool:
        """Read a manifest to its end; False: the turn ended before."""
        for each in named_entries(plan, self._servers.store, cursor=cursor):
            if isinstance(each, ReadSoFar):
                with self._servers.transaction() as session:
                    listings.require_open(session, self._listing.claim)
                    self._advance(session, Progress(each.cursor))
                if self._is_over():
                    return False
        with self._servers.transaction() as session:
            listings.note_checked(session, self._listing.claim, lease_s=self._rules.lease_s)
        return True

    def _enter(self, page: Page) -> None:
        """Add the documents of a page, as many at once as there is room for.

        Raises:
            _WaitingError: there is none.
        """
        rest = [(candidate, self._document(candidate)) for candidate in page.candidates]
        while True:
            count = self._room([document for _, document in rest]) if rest else 0
            chosen, rest = rest[:count], rest[count:]
            if not rest:
                self._add(chosen, cursor=page.cursor, skipped=page.skipped)
                return
            self._add(chosen, cursor=chosen[-1][0].cursor)

    def _room(self, documents: Sequence[Document]) -> int:
        """Return how many of some documents the system and the quota of the key take now.

        Raises:
            _WaitingError: none.
        """
        left = self._pages_left()
        if left is None:
            return len(documents)
        pages = accumulate(document.page_estimate for document in documents)
        # A document is let in while anything is left, whatever its size is guessed to be.
        return max(sum(sent <= left for sent in pages), 1)

    def _pages_left(self) -> int | None:
        """Return how many pages the key may still send, at least 1; None: as many as it likes.

        Raises:
            _WaitingError: none, or the system is full.
        """
        servers, listing = self._servers, self._listing
        try:
            servers.admission.require_room(Priority.BULK)
        except ApiError as error:
            raise _WaitingError from error
        if listing.key_id is None:
            return None
        with servers.transaction() as session:
            use = key_admission.key_use(session, tenant=listing.tenant, key_id=listing.key_id)
        if use.pages_left == 0:
            raise _WaitingError
        return use.pages_left

    def _add(
        self,
        chosen: Sequence[tuple[Candidate, Document]],
        *,
        cursor: str | None,
        skipped: int = 0,
    ) -> None:
        by_object: dict[Fingerprint, Document] = {}
        for candidate, document in chosen:
            by_object.setdefault(fingerprint_of(candidate.source), document)
        servers, claim = self._servers, self._listing.claim
        with servers.transaction() as session:
            listings.require_open(session, claim)
            added = batch_objects.enter(session, claim.batch_id, by_object)
            if key_admission.charge_all(session, added).is_used_up:
                raise _WaitingError  # another upload of the key was faster
            progress = Progress(
                cursor,
                found=len(chosen),
                duplicates=len(chosen) - len(added),
                skipped=skipped + sum(candidate.skipped for candidate, _ in chosen),
                size_bytes=sum(candidate.source.size_bytes for candidate, _ in chosen),
            )
            self._advance(session, progress)
        for document in added:
            servers.admission.note_accepted(document)
        log.info("objects entered", found=len(chosen), documents=len(added))

    def _document(self, candidate: Candidate) -> Document:
        listing, fields = self._listing, candidate.fields
        own = fields.options
        return document_of(
            candidate.source,
            DocumentFields(
                batch_id=listing.claim.batch_id,
                external_id=fields.external_id,
                metadata=fields.metadata,
            ),
            resolve_options(listing.options, own) if own else self._options,
            document_id=new_id(),
            tenant=listing.tenant,
            key_id=listing.key_id,
            page_limits=self._rules.page_limits,
        )

    def _advance(self, session: Session, progress: Progress) -> None:
        listings.advance(session, self._listing.claim, progress, lease_s=self._rules.lease_s)

    def _is_over(self) -> bool:
        """Say whether the turn is over.

        Raises:
            StaleStateError: the listing is not its holder's any more.
        """
        if self._is_lost.is_set():
            raise StaleStateError(f"listing {self._listing.claim.id} was lost")
        return self._stop.is_set() or time.monotonic() >= self._ends_at


def _renew(listing: TakenListing, transaction: Transaction, *, lease_s: float) -> None:
    with transaction() as session:
        listings.renew(session, listing.claim, lease_s=lease_s)


def _put_back(
    listing: TakenListing, transaction: Transaction, *, delay_s: float, is_excused: bool
) -> None:
    # Stale: whoever took it over, or stopped it, knows what becomes of it.
    with suppress(StaleStateError), transaction() as session:
        listings.put_back(session, listing.claim, delay_s=delay_s, is_excused=is_excused)
