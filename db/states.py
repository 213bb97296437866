"""Where a batch, a document, a chunk and a page may stand, and the moves between."""

from collections.abc import Mapping
from enum import StrEnum


class BatchState(StrEnum):
    """``finished`` is reached when the batch is closed and its last document is final."""

    OPEN = "open"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class DocumentState(StrEnum):
    """The way of a document; the last four are final."""

    QUEUED = "queued"
    SPLITTING = "splitting"
    RECOGNIZING = "recognizing"
    ASSEMBLING = "assembling"
    SUCCEEDED = "succeeded"
    PARTLY_SUCCEEDED = "partly_succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Priority(StrEnum):
    """Whose turn it is first; it never changes."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


class ChunkState(StrEnum):
    """``running`` goes back to ``queued`` when its work is put back."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class PageState(StrEnum):
    """``queued`` until the chunk of the page is published."""

    QUEUED = "queued"
    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


_D = DocumentState
_C = ChunkState

DOCUMENT_MOVES: Mapping[DocumentState, frozenset[DocumentState]] = {
    _D.QUEUED: frozenset({_D.SPLITTING, _D.FAILED, _D.CANCELLED}),
    # Back to queued: the split is put back after a passing fault.
    _D.SPLITTING: frozenset({_D.QUEUED, _D.RECOGNIZING, _D.FAILED, _D.CANCELLED}),
    _D.RECOGNIZING: frozenset({_D.ASSEMBLING, _D.FAILED, _D.CANCELLED}),
    # Back to recognizing: the assembly is put back after a passing fault.
    _D.ASSEMBLING: frozenset({
        _D.RECOGNIZING,
        _D.SUCCEEDED,
        _D.PARTLY_SUCCEEDED,
        _D.FAILED,
        _D.CANCELLED,
    }),
    _D.SUCCEEDED: frozenset(),
    _D.PARTLY_SUCCEEDED: frozenset(),
    _D.FAILED: frozenset(),
    _D.CANCELLED: frozenset(),
}

CHUNK_MOVES: Mapping[ChunkState, frozenset[ChunkState]] = {
    _C.QUEUED: frozenset({_C.RUNNING, _C.FAILED}),
    _C.RUNNING: frozenset({_C.QUEUED, _C.SUCCEEDED, _C.FAILED}),
    _C.SUCCEEDED: frozenset(),
    _C.FAILED: frozenset(),
}

FINAL_DOCUMENT_STATES = frozenset(state for state, moves in DOCUMENT_MOVES.items() if not moves)
OPEN_CHUNK_STATES = frozenset(state for state, moves in CHUNK_MOVES.items() if moves)


def require_document_move(source: DocumentState, target: DocumentState) -> None:
    """Refuse a move that the way of a document does not have.

    Raises:
        ValueError: no such move exists; a mistake of the caller.
    """
    if target not in DOCUMENT_MOVES[source]:
        raise ValueError(f"{source} -> {target} is not a move of a document")
