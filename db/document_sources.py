"""What the bytes of documents are, as their splits find out, and the passwords they need for that.

A password lies in a table of its own, so that no listing and no message about a row shows it. It
is gone with the transaction in which its document leaves the split, whatever ends that: a trigger
of ``documents`` sees to it (see the migration that makes it).
"""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from db import documents
from db.documents import DocumentClaim
from db.models import Document, SourcePassword


@dataclass(frozen=True, slots=True)
class ReadableBytes:
    """The bytes that are read of a document; ``key`` is None for those that came."""

    sha256: str
    key: str | None = None


def record_source(
    session: Session, claim: DocumentClaim, *, media_type: str, size_bytes: int, sha256: str
) -> None:
    """Write down what the bytes are, once they lie where those of an upload do.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    documents.write_held(
        session,
        claim,
        {"media_type": media_type, "size_bytes": size_bytes, "sha256": sha256},
    )


def has_source(session: Session, claim: DocumentClaim) -> bool:
    """Say whether ``record_source`` stands, after whatever is being committed of the document."""
    return bool(documents.locked_value(session, claim, Document.sha256))


def keep_password(session: Session, document_id: UUID, password: str) -> None:
    """Keep the password of a file until its document leaves the split."""
    session.add(SourcePassword(document_id=document_id, password=password))
    session.flush()


def find_password(session: Session, document_id: UUID) -> str | None:
    """Return the password that came with a document, while it is kept."""
    return session.scalar(
        select(SourcePassword.password).where(SourcePassword.document_id == document_id)
    )


def record_unlocked(
    session: Session, claim: DocumentClaim, *, unlocked_key: str, sha256: str
) -> None:
    """Write down where the bytes lie without encryption; the password is needed no more.

    Raises:
        StaleStateError: the claim is no longer ours.
    """
    documents.write_held(session, claim, {"unlocked_key": unlocked_key, "unlocked_sha256": sha256})
    session.execute(delete(SourcePassword).where(SourcePassword.document_id == claim.document_id))


def is_unlocked(session: Session, claim: DocumentClaim, *, unlocked_key: str) -> bool:
    """Say whether ``record_unlocked`` stands, after whatever is being committed of the document."""
    return documents.locked_value(session, claim, Document.unlocked_key) == unlocked_key


def readable(document: Document) -> ReadableBytes:
    """Return which bytes of a document are read: those without encryption where there are some."""
    if document.unlocked_key is None or document.unlocked_sha256 is None:
        return ReadableBytes(document.sha256)
    return ReadableBytes(document.unlocked_sha256, document.unlocked_key)
