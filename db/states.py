"""Where a batch, a document, a chunk and a page may stand, and the moves between."""

from collections.abc import Mapping
from enum import StrEnum


class BatchState(StrEnum):
    """``finished`` is reached when the batch is closed and its last document is final.

    ``listing``: what it is filled from is still gone through. ``failed``: that ended with an error.
    """

    OPEN = "open"
    LISTING = "listing"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class DocumentState(StrEnum):
    """The way of a document: four states of work, four final ones, and the way out.

    A final document may start over (``retry``) or be deleted. ``deleting`` hides it from everybody
    until its objects are gone and its row with them.
    """

    QUEUED = "queued"
    SPLITTING = "splitting"
    RECOGNIZING = "recognizing"
    ASSEMBLING = "assembling"
    SUCCEEDED = "succeeded"
    PARTLY_SUCCEEDED = "partly_succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DELETING = "deleting"


class Priority(StrEnum):
    """Whose turn it is first; it never changes."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


class ChunkState(StrEnum):
    """``running`` goes back to ``queued`` when its work is put back.

    ``isolated``: nobody could finish it, and each of its pages is a chunk of its own now.
    """

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ISOLATED = "isolated"
    CANCELLED = "cancelled"


class PageState(StrEnum):
    """``queued`` until the chunk of the page is published."""

    QUEUED = "queued"
    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class EventType(StrEnum):
    """What may happen to a document and is told; a final state is called as the state is."""

    ACCEPTED = "accepted"
    RECOGNIZING = "recognizing"
    PROGRESS = "progress"
    SUCCEEDED = "succeeded"
    PARTLY_SUCCEEDED = "partly_succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    DELETED = "deleted"


class DeliveryState(StrEnum):
    """``failed``: it was tried for a day, or its endpoint was disabled; a replay begins anew."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class ExportState(StrEnum):
    """``running`` goes back to ``queued`` when its work is put back; the others are final.

    A failed one may be asked for again, after a while.
    """

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class DirectUploadState(StrEnum):
    """Of a file that a client puts into storage itself; once it is a document, it has none.

    ``failed``: the bytes that came are not those that were announced, or can be no document.
    """

    OPEN = "open"
    FAILED = "failed"
    ABORTED = "aborted"
    EXPIRED = "expired"


_D = DocumentState
_C = ChunkState

# A retry starts over: from the pages, or from the split where there are none.
_FROM_FINAL = frozenset({_D.QUEUED, _D.RECOGNIZING, _D.DELETING})

DOCUMENT_MOVES: Mapping[DocumentState, frozenset[DocumentState]] = {
    _D.QUEUED: frozenset({_D.SPLITTING, _D.FAILED, _D.CANCELLED, _D.DELETING}),
    # Back to queued: the split is put back after a passing fault.
    _D.SPLITTING: frozenset({_D.QUEUED, _D.RECOGNIZING, _D.FAILED, _D.CANCELLED, _D.DELETING}),
    _D.RECOGNIZING: frozenset({_D.ASSEMBLING, _D.FAILED, _D.CANCELLED, _D.DELETING}),
    # Back to recognizing: the assembly is put back after a passing fault.
    _D.ASSEMBLING: frozenset({
        _D.RECOGNIZING,
        _D.SUCCEEDED,
        _D.PARTLY_SUCCEEDED,
        _D.FAILED,
        _D.CANCELLED,
        _D.DELETING,
    }),
    _D.SUCCEEDED: _FROM_FINAL,
    _D.PARTLY_SUCCEEDED: _FROM_FINAL,
    _D.FAILED: _FROM_FINAL,
    _D.CANCELLED: _FROM_FINAL,
    _D.DELETING: frozenset(),
}

CHUNK_MOVES: Mapping[ChunkState, frozenset[ChunkState]] = {
    _C.QUEUED: frozenset({_C.RUNNING, _C.FAILED, _C.ISOLATED, _C.CANCELLED}),
    _C.RUNNING: frozenset({_C.QUEUED, _C.SUCCEEDED, _C.FAILED, _C.ISOLATED, _C.CANCELLED}),
    _C.SUCCEEDED: frozenset(),
    _C.FAILED: frozenset(),
    _C.ISOLATED: frozenset(),
    _C.CANCELLED: frozenset(),
}

# Of batches that take no more documents.
CLOSED_BATCH_STATES = frozenset({BatchState.FINISHED, BatchState.FAILED, BatchState.CANCELLED})
FINAL_DOCUMENT_STATES = frozenset({_D.SUCCEEDED, _D.PARTLY_SUCCEEDED, _D.FAILED, _D.CANCELLED})
OPEN_DOCUMENT_STATES = frozenset({_D.QUEUED, _D.SPLITTING, _D.RECOGNIZING, _D.ASSEMBLING})
OPEN_CHUNK_STATES = frozenset(state for state, moves in CHUNK_MOVES.items() if moves)


def require_document_move(source: DocumentState, target: DocumentState) -> None:
    """Refuse a move that the way of a document does not have.

    Raises:
        ValueError: no such move exists; a mistake of the caller.
    """
    if target not in DOCUMENT_MOVES[source]:
        raise ValueError(f"{source} -> {target} is not a move of a document")
