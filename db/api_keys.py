"""API keys: made once, shown once, kept as a hash."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.errors import RowNotFoundError
from db.models import ApiKey

PREFIX = "pf"
_SECRET_BYTES = 24


def create(
    session: Session,
    *,
    tenant: str,
    name: str,
    max_open_pages: int | None = None,
    max_pages_per_day: int | None = None,
) -> str:
    """Add a key and return it as ``pf_<id>_<secret>``; it can never be shown again.

    A quota of None is none: the limits of the whole system hold for every key.
    """
    key_id = secrets.token_hex(6)
    secret = secrets.token_hex(_SECRET_BYTES)
    session.add(
        ApiKey(
            id=key_id,
            tenant=tenant,
            secret_sha256=_hash(secret),
            name=name,
            max_open_pages=max_open_pages,
            max_pages_per_day=max_pages_per_day,
        )
    )
    return f"{PREFIX}_{key_id}_{secret}"


def id_of(presented: str) -> str:
    """Return the id in a key, which is no secret; empty when it is not one."""
    return presented.removeprefix(f"{PREFIX}_").partition("_")[0]


def list_all(session: Session, *, tenant: str | None = None) -> Sequence[ApiKey]:
    """Return keys in the order in which they were made, revoked ones too."""
    query = select(ApiKey).order_by(ApiKey.created_at, ApiKey.id)
    return session.scalars(query if tenant is None else query.where(ApiKey.tenant == tenant)).all()


def revoke(session: Session, key_id: str) -> ApiKey:
    """Take a key out of use, for good, and return it; once more changes nothing.

    Raises:
        RowNotFoundError: there is none.
    """
    key = get(session, key_id)
    if key.revoked_at is None:
        key.revoked_at = session.scalar(select(func.now()))
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


def tenant_of(session: Session, presented: str) -> str | None:
    """Return the tenant that a presented key belongs to; None when it is not valid.

    The secret has 192 random bits, so a plain SHA-256 cannot be guessed back; the comparison
    takes the same time for any wrong secret.
    """
    prefix, _, rest = presented.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not secret:
        return None
    key = session.scalars(
        select(ApiKey).where(
            ApiKey.id == key_id,
            ApiKey.revoked_at.is_(None),
            ApiKey.expires_at.is_(None) | (ApiKey.expires_at > func.now()),
        )
    ).one_or_none()
    if key is None or not hmac.compare_digest(key.secret_sha256, _hash(secret)):
        return None
    return key.tenant


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
