"""Make a document of an object that a store says is new: once, whoever says it how often."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import structlog

from api.accept_document import PageLimits
from api.accept_source import document_of
from api.admission import Admission
from api.errors import ApiError
from api.place_settings import WatchedPlace, WatchedPlaces
from api.s3_events.event import ObjectEvent, is_later
from api.upload_form import DocumentFields, resolve_options
from db import batches, documents, s3_events
from db.engine import Session, Transaction
from db.errors import RowNotFoundError
from db.ids import new_id
from db.models import Document
from db.s3_events import SeenObject
from db.states import Priority
from storage import keys, source_object
from storage.errors import SourceNotFoundError
from storage.object_store import ObjectStore
from storage.source_object import SourceAddress, SourceObject, is_usable_name

log = structlog.get_logger(__name__)


class Outcome(StrEnum):
    """What became of an event; whichever it is, its message is done with."""

    ACCEPTED = "accepted"  # there is a new document
    KNOWN = "known"  # there is one of this object already, or there was
    OUTDATED = "outdated"  # a later event of the same key was there before
    UNWATCHED = "unwatched"  # it lies in no watched place
    GONE = "gone"  # there is no such object now
    UNUSABLE = "unusable"  # a folder, or a key that cannot be written down
    REFUSED = "refused"  # the store does not hand it out; for who has no place to set it aside


TakeIn = Callable[[ObjectEvent], Outcome]
"""Handles one event; what it raises says that the event is not done with."""


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """What is taken in; see the settings of these names.

    Attributes:
        watched: places whose objects become documents.
        own_bucket: of Pagefleet, whose objects never do.
        page_limits: of documents and pages.
    """

    watched: WatchedPlaces
    own_bucket: str
    page_limits: PageLimits


def take_in_object(
    event: ObjectEvent,
    *,
    transaction: Transaction,
    store: ObjectStore,
    admission: Admission,
    rules: IntakeRules,
) -> Outcome:
    """Add the document of a new object, unless the object is known.

    The object is looked at first, and what stands there now counts, not what the event says of it:
    an event may be old, told twice, or about an upload that has only begun. One transaction
    notes the object and adds the document, so that dying before or after its COMMIT is the same
    as being told again.

    Raises:
        ApiError: the system is full, or the batch of the place takes no documents.
        SourceRefusedError: the store does not hand the object out.
        StorageUnavailableError: the store is away.
        DatabaseError: the database is away, or refuses.
    """
    place = place_of(event, rules)
    if place is None:
        return Outcome.UNWATCHED
    if not _is_usable(event):
        log.warning("event of an unusable object dropped", bucket=event.bucket)
        return Outcome.UNUSABLE
    admission.require_room(Priority(place.priority))
    address = SourceAddress(event.bucket, event.key, event.version_id)
    try:
        source = source_object.describe(store, address)
    except SourceNotFoundError:
        return Outcome.GONE
    if source.is_folder:
        return Outcome.UNUSABLE
    with transaction() as session:
        document = _document(session, source, place, rules)
        outcome = _add(session, event, source, document)
    if outcome is Outcome.ACCEPTED:
        admission.note_accepted(document)
        log.info("object accepted", document_id=str(document.id), size_bytes=source.size_bytes)
    return outcome


def place_of(event: ObjectEvent, rules: IntakeRules) -> WatchedPlace | None:
    """Return the watched place of an object, the innermost of several; never for our own."""
    if event.bucket == rules.own_bucket and event.key.startswith(keys.ROOT):
        return None
    holding = [place for place in rules.watched if place.holds(event.bucket, event.key)]
    return max(holding, key=lambda place: len(place.prefix), default=None)


def require_room_for_all(admission: Admission, rules: IntakeRules) -> None:
    """Refuse before anything is received, if any watched place has no room.

    Raises:
        ApiError: there is none; says after which time there may be.
        DatabaseError: the database cannot be asked.
    """
    for priority in sorted({place.priority for place in rules.watched}):
        admission.require_room(Priority(priority))


def _add(session: Session, event: ObjectEvent, source: SourceObject, document: Document) -> Outcome:
    s3_events.lock_key(session, event.bucket, event.key)
    sequencer = event.sequencer
    if sequencer is not None and any(
        is_later(seen, sequencer) for seen in s3_events.sequencers(session, event.bucket, event.key)
    ):
        return Outcome.OUTDATED
    seen = SeenObject(event.bucket, event.key, source.version_id, source.etag)
    if not s3_events.add(session, seen, document_id=document.id, sequencer=sequencer):
        return Outcome.KNOWN
    # The sweep sends it when its turn has come: events arrive in thousands.
    documents.insert(session, document, dispatch_after_s=0)
    return Outcome.ACCEPTED


def _document(
    session: Session, source: SourceObject, place: WatchedPlace, rules: IntakeRules
) -> Document:
    options = place.options
    if place.batch_id is not None:
        try:
            batch = batches.get(session, place.batch_id, tenant=place.tenant)
        except RowNotFoundError as error:
            raise ApiError("unknown_batch") from error
        if not batches.takes_documents(session, place.batch_id):
            raise ApiError("batch_closed")
        options = resolve_options(batch.options, options.model_dump(exclude_unset=True))
    return document_of(
        source,
        DocumentFields(batch_id=place.batch_id, priority=place.priority),
        options,
        document_id=new_id(),
        tenant=place.tenant,
        key_id=None,
        page_limits=rules.page_limits,
    )


def _is_usable(event: ObjectEvent) -> bool:
    texts = (event.key, event.version_id or "", event.sequencer or "")
    return all(map(is_usable_name, texts))
