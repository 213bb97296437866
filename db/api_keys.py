"""API keys: made once, shown once, kept as a hash."""

import hashlib
import hmac
import secrets

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import ApiKey

PREFIX = "pf"
_SECRET_BYTES = 24


def create(session: Session, *, tenant: str, name: str) -> str:
    """Add a key and return it as ``pf_<id>_<secret>``; it can never be shown again."""
    key_id = secrets.token_hex(6)
    secret = secrets.token_hex(_SECRET_BYTES)
    session.add(ApiKey(id=key_id, tenant=tenant, secret_sha256=_hash(secret), name=name))
    return f"{PREFIX}_{key_id}_{secret}"


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
