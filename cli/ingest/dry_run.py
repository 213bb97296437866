"""What a run would send, without sending anything."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from api.estimates import guess_pages
from cli.client import ApiClient
from cli.ingest.content import ContentError
from cli.ingest.found import Found, Source
from cli.ingest.upload import identity_of, unsuitable
from workers.ocr.formats import MediaType, sniff

_MOST_PAGES: Final = 10_000  # of one document, as its size alone says little
_SEVERAL_PAGES: Final = frozenset({MediaType.PDF, MediaType.TIFF})


@dataclass(slots=True)
class Plan:
    """What was found.

    Attributes:
        files: that would be sent.
        size_bytes: of them.
        pages: of images, which have one each.
        estimated_pages: of PDF and TIFF files, guessed from their sizes.
        duplicates: files of the content of another one.
        refused: files that would not be sent, by the reason's code.
        skipped: files that are no documents.
        seconds: until they are read at the pace of the last minutes; None: nobody knows.
    """

    files: int = 0
    size_bytes: int = 0
    pages: int = 0
    estimated_pages: int = 0
    duplicates: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    seconds: float | None = None
    _seen: set[bytes] = field(default_factory=set)

    def add(self, found: Found) -> tuple[str, str] | None:
        """Count a file; return code and message where it would not be sent."""
        refusal = found.refusal
        if refusal is None:
            try:
                content = found.fetch()
                try:
                    digest = content.digest()
                finally:
                    content.close()
            except ContentError as error:
                self.refused[error.code] += 1
                return error.code, error.message
            refusal = unsuitable(digest, is_named=found.is_named)
            if refusal is None:
                self._count(digest.head, digest.size_bytes, digest.sha256, found)
                return None
        if refusal.is_skip:
            self.skipped += 1
        else:
            self.refused[refusal.code] += 1
        return refusal.code, refusal.message

    def _count(self, head: bytes, size_bytes: int, sha256: str, found: Found) -> None:
        identity = bytes.fromhex(identity_of(sha256, found.fields))
        if identity in self._seen:
            self.duplicates += 1
            return
        self._seen.add(identity)
        self.files += 1
        self.size_bytes += size_bytes
        media_type = sniff(head)
        if media_type in _SEVERAL_PAGES:
            self.estimated_pages += guess_pages(media_type, size_bytes, max_pages=_MOST_PAGES)
        else:
            self.pages += 1


def estimate_seconds(plan: Plan, client: ApiClient) -> float | None:
    """Return how long what waits, and then this, takes at the present pace; None: unknown.

    Raises:
        ApiError: the API does not say.
    """
    load = client.load()
    if load.pages_per_s <= 0:
        return None
    pages = load.pages_queued + load.pages_in_flight + plan.pages + plan.estimated_pages
    return round(pages / load.pages_per_s, 1)


def look(source: Source, plan: Plan) -> list[tuple[Found, str, str]]:
    """Count all files of a source; return those that would not be sent."""
    unsent = []
    for found in source.scan():
        reason = plan.add(found)
        if reason is not None:
            unsent.append((found, *reason))
    return unsent
