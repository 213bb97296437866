"""Files that clients put into storage themselves: from their announcement to their document.

The id of such an upload is that of the document which it becomes. Its row stands until then: the
transaction that adds the document takes it away. One that ends otherwise stays as long as somebody
may still send a part of it, so that what arrives late is removed as well.

Whoever checks an upload holds it by ``checked_until``. The sweep takes what has expired and nobody
holds, and whoever holds it keeps it only while he does: of the two one comes first, by the clock
and the lock of the row, as in ``db.uploads``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, DateTime, and_, case, delete, func, or_, select, update
from sqlalchemy.orm import Session

from db.errors import RowNotFoundError
from db.intake_models import DirectUpload
from db.states import DirectUploadState

# A part that was begun with an address that has expired meanwhile is done by then.
_LATE_PARTS_S = 3_600

_NOW = func.clock_timestamp(type_=DateTime(timezone=True))
_OPEN = DirectUpload.state == DirectUploadState.OPEN


class TooManyUploadsError(Exception):
    """The tenant has as many open uploads as it may."""


class UploadIsCheckedError(Exception):
    """Somebody is just checking the upload, and about to make its document."""


@dataclass(frozen=True, slots=True)
class EndedUpload:
    """An upload whose bytes are to be removed.

    Attributes:
        upload_id: of it.
        parts_id: which its parts have in storage; None: not noted, so there may be any.
        is_last: whether no part of it can arrive any more.
    """

    upload_id: UUID
    parts_id: str | None
    is_last: bool


def insert(session: Session, upload: DirectUpload, *, expires_s: float, most_open: int) -> None:
    """Add an upload that has ``expires_s`` seconds to become a document.

    Raises:
        TooManyUploadsError: its tenant has ``most_open`` of them.
    """
    are_open = select(func.count()).where(DirectUpload.tenant == upload.tenant, _OPEN)
    if (session.scalar(are_open) or 0) >= most_open:
        raise TooManyUploadsError
    upload.expires_at = upload.clear_after = _NOW + timedelta(seconds=expires_s)
    session.add(upload)
    session.flush()


def get(session: Session, upload_id: UUID, *, tenant: str) -> DirectUpload:
    """Return an upload of this tenant that is open, or whose bytes were not what was announced.

    Raises:
        RowNotFoundError: there is none: none ever, or it has expired, was aborted, or is a
            document by now.
    """
    shown = or_(
        and_(_OPEN, or_(DirectUpload.expires_at > _NOW, _is_held())),
        DirectUpload.state == DirectUploadState.FAILED,
    )
    upload = session.scalars(
        select(DirectUpload).where(
            DirectUpload.id == upload_id, DirectUpload.tenant == tenant, shown
        )
    ).one_or_none()
    if upload is None:
        raise RowNotFoundError(f"no upload {upload_id}")
    return upload


def find_by_idempotency_key(session: Session, *, tenant: str, key: str) -> DirectUpload | None:
    """Return the open upload that was announced under this key, if any."""
    return session.scalars(
        select(DirectUpload).where(
            DirectUpload.tenant == tenant, DirectUpload.idempotency_key == key
        )
    ).one_or_none()


def note_parts(session: Session, upload_id: UUID, parts_id: str) -> bool:
    """Write down what its parts are called in storage; False: that is known, or it has ended."""
    return _set_one(
        session, and_(_OPEN, DirectUpload.parts_id.is_(None)), upload_id, parts_id=parts_id
    )


def begin_check(session: Session, upload_id: UUID, *, lease_s: float) -> bool:
    """Take an upload, to check it; False: somebody else does, or it has ended."""
    return _set_one(
        session,
        and_(_OPEN, DirectUpload.expires_at > _NOW, ~_is_held()),
        upload_id,
        checked_until=_NOW + timedelta(seconds=lease_s),
    )


def renew_check(session: Session, upload_id: UUID, *, lease_s: float) -> bool:
    """Hold an upload for longer; False: it is not held any more."""
    return _set_one(
        session,
        and_(_OPEN, _is_held()),
        upload_id,
        checked_until=_NOW + timedelta(seconds=lease_s),
    )


def end_check(session: Session, upload_id: UUID) -> None:
    """Let an upload go that could not be checked now."""
    _set_one(session, _OPEN, upload_id, checked_until=None)


def end(session: Session, upload_id: UUID) -> bool:
    """Take an upload away that is held, with the transaction that adds its document.

    False: it is not held any more, and may be gone, with its bytes.
    """
    row = session.execute(
        delete(DirectUpload)
        .where(DirectUpload.id == upload_id, _OPEN, _is_held())
        .returning(DirectUpload.id)
    ).one_or_none()
    return row is not None


def fail(session: Session, upload_id: UUID, *, code: str) -> None:
    """End an upload whose bytes can become no document."""
    _set_one(
        session,
        _OPEN,
        upload_id,
        state=DirectUploadState.FAILED,
        error_code=code,
        checked_until=None,
        clear_after=_NOW,
        # Free for another try: who announces the file again means it.
        idempotency_key=None,
    )


def abort(session: Session, upload_id: UUID, *, tenant: str) -> None:
    """End an upload of this tenant that is not to become a document.

    Raises:
        RowNotFoundError: there is none.
        UploadIsCheckedError: it may be one in a moment.
    """
    upload = get(session, upload_id, tenant=tenant)
    if not _set_one(
        session,
        and_(DirectUpload.state == upload.state, ~_is_held()),
        upload_id,
        state=DirectUploadState.ABORTED,
        clear_after=_NOW,
        idempotency_key=None,
    ):
        raise UploadIsCheckedError


def take_ended(session: Session, *, limit: int, backoff_s: float) -> Sequence[EndedUpload]:
    """Take uploads whose bytes are to be removed, the longest due first; open ones have expired.

    The next look at each is put off by ``backoff_s`` seconds, for the case that it fails.
    """
    due = session.scalars(
        select(DirectUpload.id)
        .where(DirectUpload.clear_after <= _NOW, ~_is_held())
        .order_by(DirectUpload.clear_after)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    if not due:
        return []
    rows = session.execute(
        update(DirectUpload)
        .where(DirectUpload.id.in_(due))
        .values(
            state=case((_OPEN, DirectUploadState.EXPIRED), else_=DirectUpload.state),
            idempotency_key=None,
            clear_after=_NOW + timedelta(seconds=backoff_s),
        )
        .returning(
            DirectUpload.id,
            DirectUpload.parts_id,
            (_writers_until() <= _NOW).label("is_last"),
        )
        .execution_options(synchronize_session=False)
    )
    return [EndedUpload(row.id, row.parts_id, is_last=row.is_last) for row in rows]


def close(session: Session, ended: EndedUpload) -> None:
    """Note that the bytes of an upload were removed: its row goes, or waits for late parts."""
    if ended.is_last:
        session.execute(delete(DirectUpload).where(DirectUpload.id == ended.upload_id))
    else:
        _set_one(session, ~_OPEN, ended.upload_id, clear_after=_writers_until())


def _writers_until() -> ColumnElement[datetime]:
    # No address is given out that is good for longer than the upload.
    return DirectUpload.expires_at + timedelta(seconds=_LATE_PARTS_S)


def _is_held() -> ColumnElement[bool]:
    return and_(DirectUpload.checked_until.is_not(None), DirectUpload.checked_until > _NOW)


def _set_one(
    session: Session, condition: ColumnElement[bool], upload_id: UUID, **values: object
) -> bool:
    row = session.execute(
        update(DirectUpload)
        .where(DirectUpload.id == upload_id, condition)
        .values(**values)
        .returning(DirectUpload.id)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    return row is not None
