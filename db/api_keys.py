"""API keys: made once, shown once, kept as a hash."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.errors import RowNotFoundError
from db.key_models import ApiKey
from db.scopes import Scope

PREFIX = "pf"
_SECRET_BYTES = 24
# How far the time of its last use may be behind: what a use costs is a write now and then.
LAST_USE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Grant:
    """What somebody may who has shown a valid key.

    Attributes:
        key_id: of the key, no secret.
        tenant: whose documents it opens.
        scopes: what it may do.
        expires_in_s: for how long it is still valid, with the secret that was shown; None: for
            ever.
        max_requests_per_minute: None for any number.
        is_use_due: whether its last use is to be noted.
    """

    key_id: str
    tenant: str
    scopes: frozenset[str]
    expires_in_s: float | None = None
    max_requests_per_minute: int | None = None
    is_use_due: bool = False


class Refusal(Enum):
    """Why a key opens nothing; all but ``UNKNOWN`` are for those alone who have its secret."""

    UNKNOWN = auto()
    EXPIRED = auto()
    REVOKED = auto()


def create(
    session: Session,
    *,
    tenant: str,
    name: str,
    scopes: Iterable[Scope] = tuple(Scope),
    expires_in: timedelta | None = None,
    max_open_pages: int | None = None,
    max_pages_per_day: int | None = None,
    max_requests_per_minute: int | None = None,
) -> str:
    """Add a key and return it as ``pf_<id>_<secret>``; it can never be shown again.

    A quota of None is none: the limits of the whole system hold for every key. A key without
    ``expires_in`` does not expire.
    """
    key_id = secrets.token_hex(6)
    secret = secrets.token_hex(_SECRET_BYTES)
    session.add(
        ApiKey(
            id=key_id,
            tenant=tenant,
            secret_sha256=_hash(secret),
            name=name,
            scopes=sorted(scopes),
            expires_at=None if expires_in is None else _now(session) + expires_in,
            max_open_pages=max_open_pages,
            max_pages_per_day=max_pages_per_day,
            max_requests_per_minute=max_requests_per_minute,
        )
    )
    return f"{PREFIX}_{key_id}_{secret}"


def rotate(session: Session, key: ApiKey, *, grace: timedelta) -> str:
    """Give a key that ``get`` returned a new secret, and return it as ``create``.

    The secret of before is valid for ``grace`` more, the one before that no longer.

    Raises:
        ValueError: the key is revoked.
    """
    if key.revoked_at is not None:
        raise ValueError(f"key {key.id} is revoked")
    secret = secrets.token_hex(_SECRET_BYTES)
    key.previous_secret_sha256 = key.secret_sha256
    key.previous_secret_until = _now(session) + grace
    key.secret_sha256 = _hash(secret)
    return f"{PREFIX}_{key.id}_{secret}"


def expire(session: Session, key: ApiKey, expires_in: timedelta | None) -> None:
    """Say from when on a key is not valid any more; None: it does not expire."""
    key.expires_at = None if expires_in is None else _now(session) + expires_in


def revoke(session: Session, key_id: str) -> ApiKey:
    """Take a key out of use, for good, and return it; once more changes nothing.

    Raises:
        RowNotFoundError: there is none.
    """
    key = get(session, key_id)
    if key.revoked_at is None:
        key.revoked_at = _now(session)
    return key


def get(session: Session, key_id: str) -> ApiKey:
    """Return a key to be changed.

    Raises:
        RowNotFoundError: there is none.
    """
    key = session.get(ApiKey, key_id, with_for_update=True)
    if key is None:
        raise RowNotFoundError(f"no key has the id {key_id}")
    return key


def id_of(presented: str) -> str:
    """Return the id in a key, which is no secret; empty when it is not one."""
    return presented.removeprefix(f"{PREFIX}_").partition("_")[0]


def ids_of_name(session: Session, name: str) -> Sequence[str]:
    """Return the ids of the keys of a name that are not revoked, in the order of their making."""
    return session.scalars(
        select(ApiKey.id)
        .where(ApiKey.name == name, ApiKey.revoked_at.is_(None))
        .order_by(ApiKey.created_at, ApiKey.id)
    ).all()


def list_all(session: Session, *, tenant: str | None = None) -> Sequence[ApiKey]:
    """Return keys in the order in which they were made, revoked ones too."""
    query = select(ApiKey).order_by(ApiKey.created_at, ApiKey.id)
    return session.scalars(query if tenant is None else query.where(ApiKey.tenant == tenant)).all()


def look_up(session: Session, presented: str) -> Grant | Refusal:
    """Return what a presented key allows, or why it allows nothing.

    The secret has 192 random bits, so a plain SHA-256 cannot be guessed back; the comparison
    takes the same time for any wrong secret. It comes first: whoever has no right secret is not
    told what became of a key.
    """
    prefix, _, rest = presented.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not secret:
        return Refusal.UNKNOWN
    found = session.execute(select(ApiKey, func.now()).where(ApiKey.id == key_id)).one_or_none()
    if found is None:
        return Refusal.UNKNOWN
    key, now = found
    is_current = _is_hash_of(secret, key.secret_sha256)
    is_previous = _is_hash_of(secret, key.previous_secret_sha256)
    if not (is_current or is_previous):
        return Refusal.UNKNOWN
    if key.revoked_at is not None:
        return Refusal.REVOKED
    ends = [key.expires_at, None if is_current else key.previous_secret_until]
    expires_at = min((each for each in ends if each is not None), default=None)
    if expires_at is not None and expires_at <= now:
        return Refusal.EXPIRED
    return Grant(
        key_id=key.id,
        tenant=key.tenant,
        scopes=frozenset(key.scopes),
        expires_in_s=None if expires_at is None else (expires_at - now).total_seconds(),
        max_requests_per_minute=key.max_requests_per_minute,
        is_use_due=key.last_used_at is None or key.last_used_at < now - LAST_USE,
    )


def note_use(session: Session, key_id: str) -> None:
    """Note that a key is in use, unless somebody has just done so.

    A row that is locked is left alone: who asks something with a key does not wait for those who
    add documents with it, and is back before long.
    """
    due = (
        select(ApiKey.id)
        .where(
            ApiKey.id == key_id,
            ApiKey.last_used_at.is_(None) | (ApiKey.last_used_at < func.now() - LAST_USE),
        )
        .with_for_update(skip_locked=True, key_share=True)
    )
    session.execute(
        update(ApiKey)
        .where(ApiKey.id.in_(due))
        .values(last_used_at=func.now())
        .execution_options(synchronize_session=False)
    )


def _now(session: Session) -> datetime:
    return session.scalars(select(func.now())).one()


def _is_hash_of(secret: str, digest: str | None) -> bool:
    return digest is not None and hmac.compare_digest(digest, _hash(secret))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
