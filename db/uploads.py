"""Objects of documents whose rows are not there yet, so that none is left behind for ever.

A row stands from before the object is made to the transaction that adds the document, which takes
it away. One that is still there when it expires belongs to an API that died, or could not tidy up.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from db.intake_models import Upload


def begin(session: Session, document_id: UUID, *, expires_s: float) -> None:
    """Note that an object is about to be made, by somebody who is done in ``expires_s`` seconds.

    The COMMIT does not wait for the disk: what a crash of the database may take with it is a note
    that is needed only where the API dies as well, and whoever finds it gone accepts nothing.
    """
    session.execute(
        text("""
            WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
            INSERT INTO uploads (document_id, expires_at)
            SELECT :document_id, now() + make_interval(secs => :expires_s) FROM quick
        """),
        {"document_id": document_id, "expires_s": expires_s},
    )


def end(session: Session, document_id: UUID) -> bool:
    """Take the note away, with the transaction that adds the document.

    False: it has expired, or is gone, and the object with it. Clock and not transaction time: a
    row that is free and expired here stays so, and one that is locked here is not taken there.
    """
    row = session.execute(
        delete(Upload)
        .where(Upload.document_id == document_id, Upload.expires_at > func.clock_timestamp())
        .returning(Upload.document_id)
    ).one_or_none()
    return row is not None


def expired(session: Session, *, limit: int) -> Sequence[UUID]:
    """Return documents that will not be added any more and whose objects may be there."""
    return session.scalars(
        select(Upload.document_id)
        .where(Upload.expires_at < func.clock_timestamp())
        .order_by(Upload.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()


def forget(session: Session, document_ids: Iterable[UUID]) -> None:
    """Take notes away whose objects are gone."""
    session.execute(delete(Upload).where(Upload.document_id.in_(list(document_ids))))
