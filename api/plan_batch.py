"""What a batch would be filled with: counted, and nothing written."""

import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from api.admission import Load
from api.batch_sources import NewBatch, source_to_row
from api.cursor import CursorError, decode_place, encode_place
from api.errors import ApiError, FieldProblem, InvalidFieldsError, is_answered
from api.estimates import guess_pages
from api.listing_errors import ListingFailedError
from api.listing_pages import ListingPlan, Page, is_cursor, looking, open_manifest, pages_of
from api.object_manifest import EntryRules
from api.services import Services
from api.upload_form import resolve_options
from api.views import BatchPlanView
from storage.object_store import ObjectStore
from storage.source_object import SourceObject
from workers.ocr.formats import MediaType

# Of one request, short of the time that a client is given for an answer.
COUNTING_S: Final = 8.0
_LOOKS_AT_ONCE: Final = 4
# Behind which the time is looked at; of a slow store each that is named takes a while.
_PAGE_OBJECTS: Final = 20
_IMAGES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp"})
_TIFFS: Final = frozenset({".tif", ".tiff"})


@dataclass(slots=True)
class BatchEstimate:
    """What was counted.

    Attributes:
        files: objects that would become documents.
        size_bytes: of them.
        pages: of images, by their names, which have one each.
        estimated_pages: of all others, guessed from their sizes.
        missing: objects that are named and not there, or not handed out.
        skipped: what is no document, as folders are.
        cursor: where the next count goes on; None: all is counted.
    """

    files: int = 0
    size_bytes: int = 0
    pages: int = 0
    estimated_pages: int = 0
    missing: int = 0
    skipped: int = 0
    cursor: str | None = None

    def add(self, page: Page, *, max_pages: int) -> None:
        """Count a page of the listing; a document has at most ``max_pages``."""
        self.skipped += page.skipped
        for candidate in page.candidates:
            self.skipped += candidate.skipped
            if candidate.source.etag:
                self._count(candidate.source, max_pages)
            else:
                self.missing += 1

    def _count(self, source: SourceObject, max_pages: int) -> None:
        self.files += 1
        self.size_bytes += source.size_bytes
        ending = PurePosixPath(source.address.key).suffix.lower()
        if ending in _IMAGES:
            self.pages += 1
        else:
            media_type = MediaType.TIFF if ending in _TIFFS else MediaType.PDF
            self.estimated_pages += guess_pages(media_type, source.size_bytes, max_pages=max_pages)


def plan_batch(
    plan: ListingPlan,
    store: ObjectStore,
    *,
    cursor: str | None,
    max_pages: int,
    counting_s: float = COUNTING_S,
) -> BatchEstimate:
    """Count what a batch would be filled with, for some seconds.

    Args:
        plan: what is gone through.
        store: any bucket of the service.
        cursor: where an earlier count ended; None: there was none.
        max_pages: of a document.
        counting_s: after which it ends behind the page that it is at.

    Raises:
        ListingFailedError: it could not be gone through.
        StorageUnavailableError: the store is away.
    """
    ends_at = time.monotonic() + counting_s
    counted = BatchEstimate()
    with looking(_LOOKS_AT_ONCE) as executor:
        for page in pages_of(plan, store, executor, cursor=cursor):
            counted.add(page, max_pages=max_pages)
            if time.monotonic() >= ends_at:
                counted.cursor = page.cursor
                break
    return counted


def seconds_to_read(load: Load, pages: int) -> float | None:
    """Return how long what waits, and then these, take at the present pace; None: unknown."""
    if load.pages_per_s <= 0:
        return None
    waiting = sum(work.pages for work in load.open.values())
    return round((waiting + pages) / load.pages_per_s, 1)


def count_objects(new: NewBatch, *, tenant: str, services: Services) -> BatchPlanView:
    """Return what a batch would be filled with, if this tenant made it.

    Raises:
        ApiError: a place is not allowed, or cannot be gone through.
        InvalidFieldsError: the request names nothing, or something wrong.
        CursorError: the cursor is of another count.
        StorageUnavailableError: the store is away.
        DatabaseError: nobody says how much waits.
    """
    settings = services.settings
    resolve_options({}, new.options)
    source = source_to_row(new, new.options, settings.api_sources, tenant=tenant)
    if source is None:
        raise InvalidFieldsError(
            FieldProblem("dry_run", "needs objects, a manifest or a prefix to be counted")
        )
    try:
        counted = plan_batch(
            ListingPlan(
                source,
                open_manifest(services.store, source, max_bytes=settings.api_max_manifest_bytes),
                EntryRules(settings.api_sources, tenant, new.options),
                _PAGE_OBJECTS,
            ),
            services.store,
            cursor=None if new.cursor is None else _place(new.cursor, source["kind"]),
            max_pages=settings.max_pages,
            counting_s=min(COUNTING_S, settings.api_answer_timeout_s / 2),
        )
    except ListingFailedError as error:
        if not is_answered(error.code):
            raise ApiError(
                "invalid_manifest", detail="The manifest was replaced while it was read."
            ) from error
        raise ApiError(error.code, detail=error.detail) from error
    pages = counted.pages + counted.estimated_pages
    return BatchPlanView(
        files=counted.files,
        size_bytes=counted.size_bytes,
        pages=counted.pages,
        estimated_pages=counted.estimated_pages,
        missing=counted.missing,
        skipped=counted.skipped,
        seconds=seconds_to_read(services.admission.load(), pages),
        next_cursor=None if counted.cursor is None else encode_place(counted.cursor),
    )


def _place(cursor: str, kind: str) -> str:
    place = decode_place(cursor)
    if not is_cursor(kind, place):
        raise CursorError(cursor)
    return place
