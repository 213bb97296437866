"""Listings of batches: taking one, moving it on with what it found, ending it.

Whoever goes through a listing is its holder until his lease ends, or he gives it back. What he
found and how far he is are written in one transaction, and only while the listing is still his: of
two holders one writes, and a holder that died is followed from where he was.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, defer

from db import batches
from db.errors import StaleStateError, TooManyListingsError
from db.intake_models import BatchListing, ListingTurn
from db.models import Batch
from db.states import BatchState

MOST_OPEN_PER_TENANT = 100
# Names and metadata of objects are their documents' and go with them; requests are told apart by a
# digest.
_KEPT_SOURCE: ColumnElement[Any] = literal_column("""
    CASE WHEN source ->> 'kind' = 'objects'
      THEN json_build_object('kind', 'objects', 'sha256', source_sha256)
      ELSE source
    END
""")
# Their manifest is another one by now, or was none: where the last reading ended says nothing.
_BEGUN_ANEW = frozenset({"invalid_manifest", "source_changed"})
_FROM_THE_BEGINNING: Mapping[str, Any] = {
    "pinned": None,
    "cursor": None,
    "is_checked": False,
    "found": 0,
    "duplicates": 0,
    "skipped": 0,
    "size_bytes": 0,
}


@dataclass(frozen=True, slots=True)
class ListingClaim:
    """The right to go through a listing until the lease ends; ``attempt`` is the fencing token."""

    id: UUID
    batch_id: UUID
    attempt: int


@dataclass(frozen=True, slots=True)
class TakenListing:
    """A listing as it was when it was taken.

    Attributes:
        claim: the right to go through it.
        tenant: whose documents they become.
        key_id: to whose quota they count; None: nobody's.
        options: of the batch.
        source: what is to be gone through, as it was asked for.
        pinned: the manifest; None: it was not opened yet, or there is none.
        cursor: where to go on; None: at the beginning.
        is_checked: whether the manifest was read to its end once.
        failures: claims since the last page that came to nothing, with this one.
    """

    claim: ListingClaim
    tenant: str
    key_id: str | None
    options: Mapping[str, Any]
    source: Mapping[str, Any]
    pinned: Mapping[str, Any] | None
    cursor: str | None
    is_checked: bool
    failures: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a listing is, and what its last step has added; see ``BatchListing``."""

    cursor: str | None
    found: int = 0
    duplicates: int = 0
    skipped: int = 0
    size_bytes: int = 0


def add(session: Session, listing: BatchListing) -> bool:
    """Add a listing that is due at once; False: its batch takes no more documents.

    Raises:
        TooManyListingsError: the tenant has as many open ones as it may.
    """
    if not batches.takes_documents(session, listing.batch_id):
        return False
    _require_places(session, listing.tenant, 1)
    listing.source_sha256 = _digest(listing.source)
    listing.dispatch_after = func.now()
    session.add(listing)
    session.flush()
    return True


def is_first_source(session: Session, batch_id: UUID, source: Mapping[str, Any] | None) -> bool:
    """Say whether a batch was created to be filled from this; None: from nothing."""
    # What a batch is created with has its id, by which it is told from what is added later.
    found = session.scalar(select(BatchListing.source_sha256).where(BatchListing.id == batch_id))
    return found == (None if source is None else _digest(source))


def take(session: Session, *, lease_s: float) -> TakenListing | None:
    """Take a listing that is due; None: none is, or others have them.

    Of the tenant whose last turn is longest ago, and of its listings the one due for longest. Few
    are open, as each tenant may have few.
    """
    listing = session.scalars(
        select(BatchListing)
        .outerjoin(ListingTurn, ListingTurn.tenant == BatchListing.tenant)
        .where(BatchListing.dispatch_after <= func.now())
        .order_by(ListingTurn.taken_at.asc().nulls_first(), BatchListing.dispatch_after)
        .limit(1)
        .with_for_update(of=BatchListing, skip_locked=True, key_share=True)
    ).one_or_none()
    if listing is None:
        return None
    turn = insert(ListingTurn).values(tenant=listing.tenant, taken_at=func.now())
    session.execute(
        turn.on_conflict_do_update(
            index_elements=["tenant"], set_={"taken_at": turn.excluded.taken_at}
        )
    )
    listing.attempt += 1
    listing.failures += 1
    listing.dispatch_after = func.now() + timedelta(seconds=lease_s)
    return TakenListing(
        claim=ListingClaim(listing.id, listing.batch_id, listing.attempt),
        tenant=listing.tenant,
        key_id=listing.key_id,
        options=session.get_one(Batch, listing.batch_id).options,
        source=listing.source,
        pinned=listing.pinned,
        cursor=listing.cursor,
        is_checked=listing.is_checked,
        failures=listing.failures,
    )


def require_open(session: Session, claim: ListingClaim) -> None:
    """Keep the batch from being closed before the transaction ends.

    Raises:
        StaleStateError: it takes no more documents; whoever closed it has ended the listing.
    """
    if not batches.takes_documents(session, claim.batch_id):
        raise StaleStateError(f"batch {claim.batch_id} takes no more documents")


def advance(session: Session, claim: ListingClaim, progress: Progress, *, lease_s: float) -> None:
    """Note how far a listing is, and extend the lease.

    Raises:
        StaleStateError: somebody else has the listing, or it has ended.
    """
    _set(
        session,
        claim,
        cursor=progress.cursor,
        found=BatchListing.found + progress.found,
        duplicates=BatchListing.duplicates + progress.duplicates,
        skipped=BatchListing.skipped + progress.skipped,
        size_bytes=BatchListing.size_bytes + progress.size_bytes,
        failures=0,
        dispatch_after=func.now() + timedelta(seconds=lease_s),
    )


def renew(session: Session, claim: ListingClaim, *, lease_s: float) -> None:
    """Extend the lease, and nothing else.

    Raises:
        StaleStateError: somebody else has the listing, or it has ended.
    """
    _set(session, claim, dispatch_after=func.now() + timedelta(seconds=lease_s))


def pin(session: Session, claim: ListingClaim, pinned: Mapping[str, Any]) -> None:
    """Note which manifest it is that is gone through.

    Raises:
        StaleStateError: somebody else has the listing, or it has ended.
    """
    _set(session, claim, pinned=dict(pinned))


def note_checked(session: Session, claim: ListingClaim, *, lease_s: float) -> None:
    """Note that the manifest is sound to its end, so that its objects may become documents.

    Raises:
        StaleStateError: somebody else has the listing, or it has ended.
    """
    lease_end = func.now() + timedelta(seconds=lease_s)
    _set(session, claim, is_checked=True, cursor=None, failures=0, dispatch_after=lease_end)


def put_back(session: Session, claim: ListingClaim, *, delay_s: float, is_excused: bool) -> None:
    """Give a listing back, to be taken again after ``delay_s`` seconds.

    ``is_excused`` says that this claim does not count as one that came to nothing.

    Raises:
        StaleStateError: somebody else has the listing, or it has ended.
    """
    _set(
        session,
        claim,
        failures=func.greatest(BatchListing.failures - int(is_excused), 0),
        dispatch_after=func.now() + timedelta(seconds=delay_s),
    )


def finish(session: Session, claim: ListingClaim) -> None:
    """Note that all of a listing was gone through; what it named is forgotten.

    Raises:
        StaleStateError: somebody else has the listing, or it has ended.
    """
    _set(
        session,
        claim,
        dispatch_after=None,
        finished_at=func.now(),
        source=_KEPT_SOURCE,
        cursor=None,
    )


def fail(session: Session, claim: ListingClaim, *, code: str, detail: str | None) -> None:
    """End a listing for good, and with it its batch and the batch's other listings.

    Documents that it found before are read; the batch takes no more. What it names is kept, as a
    retry goes on with it.

    Raises:
        StaleStateError: somebody else has the listing, or it has ended.
    """
    batches.lock_alone(session, claim.batch_id)
    # Written again below: here it is asked whether the listing is still this holder's.
    _set(session, claim, error_code=code)
    if batches.is_cancelled(session, claim.batch_id):  # by a release that has not stopped it
        stop_all(session, claim.batch_id)
        return
    _end_open(session, claim.batch_id, code=code, detail=detail)
    session.execute(
        update(Batch)
        .where(Batch.id == claim.batch_id, Batch.state == BatchState.OPEN)
        .values(state=BatchState.FAILED)
        .execution_options(synchronize_session=False)
    )


def stop_all(session: Session, batch_id: UUID) -> None:
    """End the listings of a batch that is cancelled; their holders find that they have none.

    What they named is forgotten, by those too that have failed before.
    """
    _end_open(session, batch_id, code=None, detail=None)
    session.execute(
        update(BatchListing)
        .where(BatchListing.batch_id == batch_id)
        .values(source=_KEPT_SOURCE, cursor=None)
        .execution_options(synchronize_session=False)
    )


def stop_if_cancelled(session: Session, batch_id: UUID) -> None:
    """End the listings of a batch that was cancelled, if whoever did so has not.

    A release that knows no listings cancels batches too, while it runs beside this one.
    """
    if batches.is_cancelled(session, batch_id):
        stop_all(session, batch_id)


def start_over(session: Session, batch_id: UUID, *, tenant: str) -> bool:
    """Let a batch of this tenant whose listing failed go on with it; False: none of it has.

    What the batch has by then it does not get twice.

    Raises:
        RowNotFoundError: the tenant has no such batch.
        TooManyListingsError: the tenant would have more open listings than it may.
    """
    batch = batches.get(session, batch_id, tenant=tenant)
    batches.lock_alone(session, batch_id)
    session.refresh(batch, with_for_update={"key_share": True})
    if batch.state != BatchState.FAILED:
        return False
    batch.state = BatchState.OPEN
    failed = session.scalars(
        select(BatchListing)
        .where(BatchListing.batch_id == batch_id, BatchListing.error_code.is_not(None))
        .options(defer(BatchListing.source))
        .with_for_update(key_share=True)
    ).all()
    _require_places(session, tenant, len(failed))
    for listing in failed:
        if listing.error_code in _BEGUN_ANEW:
            for name, value in _FROM_THE_BEGINNING.items():
                setattr(listing, name, value)
        listing.error_code = listing.error_detail = None
        listing.finished_at = None
        listing.attempt += 1
        listing.failures = 0
        listing.dispatch_after = func.now()
    return True


def _end_open(session: Session, batch_id: UUID, *, code: str | None, detail: str | None) -> None:
    """End the listings of a batch; ``code`` and ``detail`` say of what, where something failed."""
    session.execute(
        update(BatchListing)
        .where(BatchListing.batch_id == batch_id, BatchListing.finished_at.is_(None))
        .values(
            finished_at=func.now(),
            dispatch_after=None,
            attempt=BatchListing.attempt + 1,
            error_code=code,
            error_detail=detail,
        )
        .execution_options(synchronize_session=False)
    )


def _digest(source: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()


def _require_places(session: Session, tenant: str, count: int) -> None:
    """Keep a tenant's open listings few, so that it holds up neither itself nor others.

    Raises:
        TooManyListingsError: there would be more than it may have.
    """
    # One after the other, so that of two at once the second counts what the first adds.
    session.execute(
        select(func.pg_advisory_xact_lock(func.hashtextextended(f"listings of {tenant}", 0)))
    )
    are_open = select(func.count()).where(
        BatchListing.tenant == tenant, BatchListing.dispatch_after.is_not(None)
    )
    if (session.scalar(are_open) or 0) + count > MOST_OPEN_PER_TENANT:
        raise TooManyListingsError(f"{MOST_OPEN_PER_TENANT} listings")


def _set(session: Session, claim: ListingClaim, **values: object) -> None:
    row = session.execute(
        update(BatchListing)
        .where(
            BatchListing.id == claim.id,
            BatchListing.attempt == claim.attempt,
            BatchListing.finished_at.is_(None),
        )
        .values(**values)
        .returning(BatchListing.id)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    if row is None:
        raise StaleStateError(f"listing {claim.id} is somebody else's, or has ended")
