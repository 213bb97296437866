"""Answers of the API as the command line uses them; what a newer one says besides is left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

FINAL_STATES: Final = frozenset({"succeeded", "partly_succeeded", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """Where a document stands; ``pages`` is None until it is split."""

    id: UUID
    filename: str
    state: str
    pages: int | None
    pages_ok: int
    pages_failed: int
    truncated: bool
    error_code: str | None
    error_message: str | None
    result_path: str | None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def pages_done(self) -> int:
        return self.pages_ok + self.pages_failed


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """Where a batch stands; ``by_state`` counts its documents, ``pages`` those that are split.

    ``found`` are objects of a bucket so far, None where nobody was asked to look; ``error_code``
    says why not all were found.
    """

    id: UUID
    name: str
    state: str
    by_state: Mapping[str, int]
    documents: int
    pages: int
    pages_ok: int
    pages_failed: int
    is_retrying: bool
    found: int | None = None
    duplicates: int = 0
    skipped: int = 0
    error_code: str | None = None
    error_message: str | None = None

    @property
    def documents_final(self) -> int:
        return sum(self.by_state[state] for state in FINAL_STATES)


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """What a batch would be filled with; ``next_cursor`` is where counting goes on, None: nowhere.

    ``pages`` are those of images, ``estimated_pages`` those of all other files; ``missing`` are
    named and not there, ``skipped`` are no documents.
    """

    files: int
    size_bytes: int
    pages: int
    estimated_pages: int
    missing: int
    skipped: int
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class SystemLoad:
    """How much the whole system has to do; ``full`` are the priorities that it refuses."""

    full: tuple[str, ...]
    pages_queued: int
    pages_in_flight: int
    pages_per_s: float


@dataclass(frozen=True, slots=True)
class Listing:
    """Documents, newest first; ``next_cursor`` is where older ones go on, None at the end."""

    documents: tuple[DocumentStatus, ...]
    next_cursor: str | None


def document_of(view: Mapping[str, Any]) -> DocumentStatus:
    """Return what an answer says of a document."""
    progress = view["progress"]
    error = view["error"] or {}
    return DocumentStatus(
        id=UUID(view["id"]),
        filename=view["filename"],
        state=view["state"],
        pages=progress["pages"],
        pages_ok=progress["ok"],
        pages_failed=progress["failed"],
        truncated=view["truncated"],
        error_code=error.get("code"),
        error_message=error.get("message"),
        result_path=view["links"]["result"],
    )


def batch_of(view: Mapping[str, Any]) -> BatchStatus:
    """Return what an answer says of a batch."""
    counts = dict(view["documents"])
    total = counts.pop("total")
    # An API of an earlier release finds nothing.
    listing = view.get("listing") or {}
    error = view.get("error") or {}
    return BatchStatus(
        id=UUID(view["id"]),
        name=view["name"],
        state=view["state"],
        by_state=counts,
        documents=total,
        pages=view["pages"]["total"],
        pages_ok=view["pages"]["ok"],
        pages_failed=view["pages"]["failed"],
        is_retrying=view["is_retrying"],
        found=listing.get("found"),
        duplicates=listing.get("duplicates", 0),
        skipped=listing.get("skipped", 0),
        error_code=error.get("code"),
        error_message=error.get("message"),
    )


def plan_of(view: Mapping[str, Any]) -> PlannedBatch:
    """Return what an answer says of a batch that is only counted."""
    return PlannedBatch(
        files=view["files"],
        size_bytes=view["size_bytes"],
        pages=view["pages"],
        estimated_pages=view["estimated_pages"],
        missing=view["missing"],
        skipped=view["skipped"],
        next_cursor=view["next_cursor"],
    )


def load_of(view: Mapping[str, Any]) -> SystemLoad:
    """Return what an answer says of the whole system."""
    return SystemLoad(
        full=tuple(name for name in ("interactive", "bulk") if view[name]["is_full"]),
        pages_queued=view["pages_queued"],
        pages_in_flight=view["pages_in_flight"],
        pages_per_s=view["drain"]["pages_per_s"],
    )


def listing_of(view: Mapping[str, Any]) -> Listing:
    """Return what an answer lists."""
    return Listing(tuple(map(document_of, view["documents"])), view["next_cursor"])
