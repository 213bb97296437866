"""Builders of rows; every value that a test does not name is a sensible one."""

from typing import Any
from uuid import UUID

from db import chunks, documents
from db.chunks import ChunkClaim, PageRecord
from db.documents import DocumentClaim
from db.engine import Session
from db.ids import new_id
from db.models import Document
from db.planned_chunks import PlannedChunk, plan_chunks
from db.states import PageState
from workers.ocr.options import OcrOptions

TENANT = "archive"
DUE_NOW_S = -1.0
NOT_DUE_S = 3_600.0


def make_document(**values: Any) -> Document:
    """Return a document that is not in a database yet."""
    options = OcrOptions()
    return Document(**{
        "id": new_id(),
        "tenant": TENANT,
        "source": {"kind": "upload"},
        "filename": "ledger.pdf",
        "media_type": "application/pdf",
        "size_bytes": 1_000,
        "sha256": "0" * 64,
        "options": options.model_dump(mode="json"),
        "options_hash": options.digest(),
        **values,
    })


def add_document(session: Session, *, dispatch_after_s: float = NOT_DUE_S, **values: Any) -> UUID:
    """Insert a queued document and return its id."""
    document = make_document(**values)
    documents.insert(session, document, dispatch_after_s=dispatch_after_s)
    return document.id


def claim_split(session: Session, document_id: UUID, *, lease_s: float = 60) -> DocumentClaim:
    """Claim a document for its split; the test fails when there is nothing to claim."""
    claim = documents.claim_split(
        session, document_id, worker="test:1", lease_s=lease_s, max_attempts=4
    )
    assert claim is not None
    return claim


def claim_chunk(
    session: Session, chunk_id: UUID, *, lease_s: float = 60, max_attempts: int = 4
) -> ChunkClaim:
    """Claim a chunk; the test fails when there is nothing to claim."""
    claim = chunks.claim(
        session, chunk_id, worker="test:1", lease_s=lease_s, max_attempts=max_attempts
    )
    assert claim is not None
    return claim


def publish_chunk(session: Session, claim: ChunkClaim, *, result_key: str | None = None) -> bool:
    """Publish all pages of a chunk as read; return whether the document is to be assembled."""
    return chunks.publish(
        session,
        claim,
        result_key=result_key or f"result-of-attempt-{claim.attempt}",
        pages=[
            PageRecord(index, PageState.OK, {"route": "ocr"})
            for index in range(claim.page_start, claim.page_stop)
        ],
        assemble_after_s=5,
    )


def add_recognizing_document(
    session: Session,
    *,
    page_count: int = 3,
    chunk_pages: int = 2,
    chord_grace_s: float | None = NOT_DUE_S,
    **values: Any,
) -> tuple[UUID, list[PlannedChunk]]:
    """Insert a document and split it; return its id and its chunks.

    ``chord_grace_s=None``: they are due at once and belong to no chord.
    """
    document_id = add_document(session, **values)
    planned = plan_chunks(range(page_count), chunk_pages=chunk_pages)
    documents.start_recognizing(
        session,
        claim_split(session, document_id),
        page_count=page_count,
        chunks=planned,
        chord_grace_s=chord_grace_s,
    )
    return document_id, planned
