"""Rows of webhooks, and what becomes of their messages."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import text

from db import cancelling, webhook_deliveries, webhooks
from db.engine import Session
from db.webhook_deliveries import DueDelivery, Failure
from db.webhook_models import WebhookDelivery, WebhookEndpoint
from db.webhooks import EVENT_TYPES
from tests.support.rows import TENANT, add_document

DAY_S = 86_400.0


def add_endpoint(
    session: Session, *, tenant: str = TENANT, event_types: Sequence[str] = EVENT_TYPES
) -> WebhookEndpoint:
    return webhooks.create(
        session,
        tenant=tenant,
        url="https://example.com/hook",
        event_types=event_types,
        description="",
    )


def end_document(session: Session, *, tenant: str = TENANT) -> UUID:
    document_id = add_document(session, tenant=tenant)
    cancelling.cancel(session, document_id, tenant=tenant)
    return document_id


def deliveries(session: Session, endpoint_id: UUID) -> Sequence[WebhookDelivery]:
    session.expunge_all()  # as another process sees them
    return webhook_deliveries.list_page(session, endpoint_id, limit=100)


def take(
    session: Session, *, room: int = 100, per_endpoint: int = 4, per_tenant: int = 100
) -> list[DueDelivery]:
    return webhook_deliveries.take(
        session, room=room, per_endpoint=per_endpoint, per_tenant=per_tenant, lease_s=60
    )


def fail(session: Session, due: DueDelivery, failure: Failure | None = None) -> bool:
    return webhook_deliveries.note_failed(
        session, due, failure or Failure("status_500", 500), disable_after_s=5 * DAY_S
    )


def let_time_pass(session: Session, time: timedelta) -> None:
    for table, columns in (
        ("webhook_deliveries", ("dispatch_after", "lease_expires_at", "retry_until")),
        ("webhook_endpoints", ("rest_until", "failing_since", "previous_secret_until")),
    ):
        moved = ", ".join(f"{column} = {column} - :time" for column in columns)
        session.execute(text(f"UPDATE {table} SET {moved}"), {"time": time})  # noqa: S608 - two tables
    session.expire_all()
