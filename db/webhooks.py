"""Webhook endpoints: the addresses that a tenant wants to be told."""

import base64
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from db.errors import RowNotFoundError, TooManyWebhooksError
from db.ids import new_id
from db.states import FINAL_DOCUMENT_STATES
from db.webhook_models import WebhookEndpoint

EVENT_TYPES = tuple(f"document.{state}" for state in sorted(FINAL_DOCUMENT_STATES))
SECRET_PREFIX = "whsec_"  # noqa: S105 - of Standard Webhooks
_SECRET_BYTES = 32
# Each end of a document writes a row for each of them.
MOST_PER_TENANT = 10
ROTATION = timedelta(hours=24)
REMOVED = "removed"


def create(
    session: Session, *, tenant: str, url: str, event_types: Sequence[str], description: str
) -> WebhookEndpoint:
    """Add an endpoint with a new secret.

    Raises:
        TooManyWebhooksError: the tenant has ``MOST_PER_TENANT`` already.
    """
    session.execute(
        select(func.pg_advisory_xact_lock(func.hashtextextended(f"webhooks of {tenant}", 0)))
    )
    if len(list_all(session, tenant=tenant)) >= MOST_PER_TENANT:
        raise TooManyWebhooksError(f"{MOST_PER_TENANT} endpoints")
    endpoint = WebhookEndpoint(
        id=new_id(),
        tenant=tenant,
        url=url,
        event_types=sorted(set(event_types)),
        secret=_new_secret(),
        description=description,
    )
    session.add(endpoint)
    session.flush()
    return endpoint


def list_all(session: Session, *, tenant: str) -> Sequence[WebhookEndpoint]:
    """Return the endpoints of a tenant, oldest first."""
    return session.scalars(
        select(WebhookEndpoint).where(WebhookEndpoint.tenant == tenant).order_by(WebhookEndpoint.id)
    ).all()


def get(session: Session, endpoint_id: UUID, *, tenant: str) -> WebhookEndpoint:
    """Return an endpoint of this tenant.

    Raises:
        RowNotFoundError: there is none.
    """
    endpoint = session.get(WebhookEndpoint, endpoint_id)
    if endpoint is None or endpoint.tenant != tenant:
        raise RowNotFoundError(f"no webhook {endpoint_id}")
    return endpoint


def begin_removal(session: Session, endpoint_id: UUID, *, tenant: str) -> None:
    """Let an endpoint be told nothing more; until ``remove`` it can be seen, as disabled.

    Raises:
        RowNotFoundError: there is none.
    """
    get(session, endpoint_id, tenant=tenant)
    session.execute(
        update(WebhookEndpoint)
        .where(WebhookEndpoint.id == endpoint_id)
        .values(
            disabled_at=func.coalesce(WebhookEndpoint.disabled_at, func.now()),
            disabled_reason=REMOVED,
        )
        .execution_options(synchronize_session=False)
    )


def remove(session: Session, endpoint_id: UUID, *, tenant: str) -> None:
    """Remove an endpoint, with the deliveries that it has left.

    Not before ``begin_removal`` is committed: an end that finds the row locked passes it over, so
    one that then stays has not been told. Of many deliveries ``webhook_deliveries.remove_some``
    comes first.

    Raises:
        RowNotFoundError: there is none.
    """
    get(session, endpoint_id, tenant=tenant)
    session.execute(delete(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id))


def rotate_secret(session: Session, endpoint_id: UUID, *, tenant: str) -> WebhookEndpoint:
    """Give an endpoint a new secret; the one of before signs along for ``ROTATION``.

    Raises:
        RowNotFoundError: there is none.
    """
    values = {
        "secret": _new_secret(),
        "previous_secret": WebhookEndpoint.secret,
        "previous_secret_until": func.now() + ROTATION,
    }
    return _changed(session, endpoint_id, tenant, values)


def enable(session: Session, endpoint_id: UUID, *, tenant: str) -> WebhookEndpoint:
    """Let an endpoint be told again what happens from now on; its failures are forgotten.

    Raises:
        RowNotFoundError: there is none.
    """
    values = {
        "disabled_at": None,
        "disabled_reason": None,
        "failures": 0,
        "failing_since": None,
        "rest_until": None,
        "last_error": None,
    }
    return _changed(session, endpoint_id, tenant, values)


def _changed(
    session: Session, endpoint_id: UUID, tenant: str, values: Mapping[str, Any]
) -> WebhookEndpoint:
    """Change an endpoint of this tenant, and return it as it is now."""
    get(session, endpoint_id, tenant=tenant)
    session.execute(
        update(WebhookEndpoint)
        .where(WebhookEndpoint.id == endpoint_id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    return session.get_one(WebhookEndpoint, endpoint_id, populate_existing=True)


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
