"""The webhooks that one tenant can see and change: filtered by tenant here, as documents are."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from api.auth import Tenant
from api.ledger import services_of
from db import webhook_deliveries, webhooks
from db.engine import Transaction
from db.states import DeliveryState
from db.webhook_models import WebhookDelivery, WebhookEndpoint

# An endpoint may have a million deliveries; so many go in far less time than a statement has.
_REMOVED_AT_ONCE = 1_000


class WebhookDisabledError(Exception):
    """Nothing is sent to the endpoint before it is enabled."""


class WebhookLedger:
    """Reads and writes of one tenant; every method but ``remove`` is one transaction.

    A method that is given an id raises ``RowNotFoundError`` when the tenant has no such row,
    and all raise ``DatabaseError`` and its subclasses.
    """

    def __init__(self, transaction: Transaction, tenant: str) -> None:
        self._transaction = transaction
        self._tenant = tenant

    def create(self, url: str, event_types: Sequence[str], description: str) -> WebhookEndpoint:
        """Add an endpoint.

        Raises:
            TooManyWebhooksError: the tenant has as many as it may.
        """
        with self._transaction() as session:
            return webhooks.create(
                session,
                tenant=self._tenant,
                url=url,
                event_types=event_types,
                description=description,
            )

    def list_all(self) -> Sequence[WebhookEndpoint]:
        with self._transaction() as session:
            return webhooks.list_all(session, tenant=self._tenant)

    def get(self, endpoint_id: UUID) -> WebhookEndpoint:
        with self._transaction() as session:
            return webhooks.get(session, endpoint_id, tenant=self._tenant)

    def remove(self, endpoint_id: UUID) -> None:
        """Remove an endpoint step by step; broken off, it stays disabled, with what is left.

        In one step it could take longer than a statement may, again and again.
        """
        with self._transaction() as session:
            webhooks.begin_removal(session, endpoint_id, tenant=self._tenant)
        removed = _REMOVED_AT_ONCE
        while removed == _REMOVED_AT_ONCE:
            with self._transaction() as session:
                removed = webhook_deliveries.remove_some(
                    session, endpoint_id, limit=_REMOVED_AT_ONCE
                )
        with self._transaction() as session:
            webhooks.remove(session, endpoint_id, tenant=self._tenant)

    def rotate_secret(self, endpoint_id: UUID) -> WebhookEndpoint:
        with self._transaction() as session:
            return webhooks.rotate_secret(session, endpoint_id, tenant=self._tenant)

    def enable(self, endpoint_id: UUID) -> WebhookEndpoint:
        with self._transaction() as session:
            return webhooks.enable(session, endpoint_id, tenant=self._tenant)

    def deliveries(
        self,
        endpoint_id: UUID,
        *,
        limit: int,
        before: UUID | None,
        state: DeliveryState | None,
    ) -> Sequence[WebhookDelivery]:
        """Return deliveries to an endpoint, newest first, those older than ``before`` only."""
        with self._transaction() as session:
            webhooks.get(session, endpoint_id, tenant=self._tenant)
            return webhook_deliveries.list_page(
                session, endpoint_id, limit=limit, before=before, state=state
            )

    def replay(self, endpoint_id: UUID, delivery_id: UUID) -> WebhookDelivery:
        """Let a delivery be sent once more.

        Raises:
            WebhookDisabledError: it would not be.
        """
        with self._transaction() as session:
            if webhooks.get(session, endpoint_id, tenant=self._tenant).disabled_at is not None:
                raise WebhookDisabledError
            return webhook_deliveries.replay(session, endpoint_id, delivery_id)


def webhook_ledger_of_request(request: Request, tenant: Tenant) -> WebhookLedger:
    """Return the webhooks of whoever asks."""
    return WebhookLedger(services_of(request).transaction, tenant)


Webhooks = Annotated[WebhookLedger, Depends(webhook_ledger_of_request)]
