"""What the listings of batches have found so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.intake_models import BatchListing


@dataclass(frozen=True, slots=True)
class Listed:
    """What all listings of one batch have come to.

    Attributes:
        is_open: whether one of them is not at its end.
        found: objects, those that the batch had already included.
        duplicates: of them, those that it had already.
        skipped: what is no document, as folders are.
        size_bytes: of what was found.
        error_code: why one of them ended before its end; None: none did.
        error_detail: what to say of that in place of the code's own sentence.
    """

    is_open: bool
    found: int
    duplicates: int
    skipped: int
    size_bytes: int
    error_code: str | None = None
    error_detail: str | None = None


def sum_each(session: Session, batch_ids: Sequence[UUID]) -> Mapping[UUID, Listed]:
    """Add up the listings of batches; one without any is not in the answer."""
    rows = session.execute(
        select(
            BatchListing.batch_id,
            func.bool_or(BatchListing.finished_at.is_(None)),
            func.sum(BatchListing.found),
            func.sum(BatchListing.duplicates),
            func.sum(BatchListing.skipped),
            func.sum(BatchListing.size_bytes),
            # Whatever ends one of them ends all, with the same error.
            func.max(BatchListing.error_code),
            func.max(BatchListing.error_detail),
        )
        .where(BatchListing.batch_id.in_(batch_ids))
        .group_by(BatchListing.batch_id)
    ).all()
    return {
        row[0]: Listed(
            is_open=row[1],
            found=int(row[2]),
            duplicates=int(row[3]),
            skipped=int(row[4]),
            size_bytes=int(row[5]),
            error_code=row[6],
            error_detail=row[7],
        )
        for row in rows
    }
