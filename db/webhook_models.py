"""The tables of webhooks and their messages."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from db.model_base import Model, one_of
from db.states import DeliveryState


class WebhookEndpoint(Model):
    """An address of a tenant that is told how documents end.

    Its secrets are kept as they are, since every message is signed with them. ``failures`` counts
    those since the last success, ``rest_until`` keeps it from being tried again at once.
    """

    __tablename__ = "webhook_endpoints"
    __table_args__ = (Index("ix_webhook_endpoints_tenant_id", "tenant", "id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    url: Mapped[str]
    event_types: Mapped[list[str]] = mapped_column(ARRAY(Text()))
    secret: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    previous_secret: Mapped[str | None] = mapped_column(default=None)
    previous_secret_until: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), init=False)
    failures: Mapped[int] = mapped_column(default=0)
    failing_since: Mapped[datetime | None] = mapped_column(default=None)
    rest_until: Mapped[datetime | None] = mapped_column(default=None)
    last_error: Mapped[str | None] = mapped_column(default=None)
    disabled_at: Mapped[datetime | None] = mapped_column(default=None)
    disabled_reason: Mapped[str | None] = mapped_column(default=None)


class WebhookDelivery(Model):
    """One message to one endpoint; written by a trigger of ``documents``.

    ``message_id`` is the event's own, the same for every endpoint and every try. ``dispatch_after``
    is NULL when nobody has to look at it any more, and ``attempt`` the fencing token, as elsewhere.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        one_of("state", DeliveryState),
        Index("ix_webhook_deliveries_endpoint_id_id", "endpoint_id", "id"),
        Index(
            "ix_webhook_deliveries_due",
            "endpoint_id",
            "dispatch_after",
            postgresql_where=text("dispatch_after IS NOT NULL"),
        ),
        Index(
            "ix_webhook_deliveries_held",
            "endpoint_id",
            postgresql_where=text("lease_expires_at IS NOT NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    endpoint_id: Mapped[UUID] = mapped_column(
        ForeignKey("webhook_endpoints.id", ondelete="CASCADE")
    )
    message_id: Mapped[str]
    type: Mapped[str]
    payload: Mapped[dict[str, Any]]
    event_at: Mapped[datetime]
    retry_until: Mapped[datetime]
    state: Mapped[str] = mapped_column(
        default=DeliveryState.WAITING, server_default=text("'waiting'")
    )
    attempt: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    dispatch_after: Mapped[datetime | None] = mapped_column(default=None)
    lease_expires_at: Mapped[datetime | None] = mapped_column(default=None)
    last_attempt_at: Mapped[datetime | None] = mapped_column(default=None)
    last_status: Mapped[int | None] = mapped_column(default=None)
    last_error: Mapped[str | None] = mapped_column(default=None)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
