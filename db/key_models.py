"""The tables of API keys, and of what was sent with them."""

from datetime import date, datetime

from sqlalchemy import BigInteger, CheckConstraint, Date, ForeignKey, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from db.model_base import Model
from db.scopes import Scope

_SCOPES = f"'{{{','.join(Scope)}}}'::text[]"


class ApiKey(Model):
    """A key ``pf_<id>_<secret>``; only the SHA-256 of the random secret is kept.

    The secret of before is valid until ``previous_secret_until``, and told apart from an unknown
    one after it. A quota of NULL is none: the limits of the whole system hold for every
    key. ``last_used_at`` is minutes behind.
    """

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint(f"cardinality(scopes) > 0 AND scopes <@ {_SCOPES}", name="scopes_known"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    secret_sha256: Mapped[str]
    name: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    expires_at: Mapped[datetime | None] = mapped_column(default=None)
    revoked_at: Mapped[datetime | None] = mapped_column(default=None)
    max_open_pages: Mapped[int | None] = mapped_column(default=None)
    max_pages_per_day: Mapped[int | None] = mapped_column(default=None)
    scopes: Mapped[list[str]] = mapped_column(
        ARRAY(Text()), default_factory=lambda: [*Scope], server_default=text(_SCOPES)
    )
    previous_secret_sha256: Mapped[str | None] = mapped_column(default=None)
    previous_secret_until: Mapped[datetime | None] = mapped_column(default=None)
    last_used_at: Mapped[datetime | None] = mapped_column(default=None)
    max_requests_per_minute: Mapped[int | None] = mapped_column(default=None)


class KeyUsage(Model):
    """Pages that a key has sent on one day (UTC)."""

    __tablename__ = "key_usage"

    key_id: Mapped[str] = mapped_column(
        ForeignKey("api_keys.id", ondelete="CASCADE"), primary_key=True
    )
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    pages: Mapped[int] = mapped_column(BigInteger, default=0)
    documents: Mapped[int] = mapped_column(BigInteger, default=0)
