"""Which objects a batch has documents of, so that it has one of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from db import documents
from db.models import Document


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells an object from others of its batch.

    Attributes:
        value: is noted; equal for what is surely one object.
        same_from: the least of the values under which the object may have been noted otherwise.
        same_to: the greatest of them.
    """

    value: bytes
    same_from: bytes
    same_to: bytes


def enter(
    session: Session, batch_id: UUID, found: Mapping[Fingerprint, Document]
) -> Sequence[Document]:
    """Add the documents of objects of which the batch has none yet; return those.

    Args:
        session: an open transaction.
        batch_id: of the batch that they belong to.
        found: queued documents by the fingerprints of their objects.
    """
    if not found:
        return []
    # One page of a batch after the other: an object that was seen, and the same that was not, have
    # no value in common over which one would wait for the other.
    session.execute(
        select(func.pg_advisory_xact_lock(func.hashtextextended(f"objects of {batch_id}", 0)))
    )
    # Arrays in place of a list of rows, which is another statement for every length.
    entered = set(
        session.scalars(
            text("""
                INSERT INTO batch_objects (batch_id, fingerprint, document_id)
                SELECT :batch_id, found.value, found.document_id
                FROM unnest(
                    CAST(:values AS bytea[]), CAST(:same_from AS bytea[]),
                    CAST(:same_to AS bytea[]), CAST(:document_ids AS uuid[])
                  ) AS found(value, same_from, same_to, document_id)
                WHERE NOT EXISTS (
                  SELECT FROM batch_objects AS known
                  WHERE known.batch_id = :batch_id
                    AND known.fingerprint BETWEEN found.same_from AND found.same_to
                )
                ON CONFLICT DO NOTHING
                RETURNING document_id
            """),
            {
                "batch_id": batch_id,
                "values": [each.value for each in found],
                "same_from": [each.same_from for each in found],
                "same_to": [each.same_to for each in found],
                "document_ids": [document.id for document in found.values()],
            },
        )
    )
    new = [document for document in found.values() if document.id in entered]
    documents.insert_all(session, new, dispatch_after_s=0)
    return new
