"""Webhooks: endpoints that are told how documents end, and what was sent to them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from api import cursor as cursors
from api.document_routes import IdCursor
from api.errors import ApiError, FieldProblem, InvalidFieldsError
from api.ledger import ServicesOfProcess
from api.problems import declared
from api.webhook_ledger import WebhookDisabledError, Webhooks
from api.webhook_views import (
    DeliveryPage,
    DeliveryView,
    NewWebhook,
    WebhookList,
    WebhookView,
    WebhookWithSecret,
    delivery_view,
    webhook_view,
    webhook_with_secret,
)
from db.errors import TooManyWebhooksError
from db.states import DeliveryState
from workers.webhook_target import WebhookTargetError, parse_url

MAX_DELIVERIES = 100
_CREATED = 201
_ACCEPTED = 202
_NO_CONTENT = 204
_OF_ONE = ("unauthenticated", "not_found", "invalid_request", "database_unavailable")
_LOCATION = {"Location": {"description": "Its address.", "schema": {"type": "string"}}}

router = APIRouter(tags=["webhooks"])


@router.post(
    "/v1/webhooks",
    status_code=_CREATED,
    responses={
        _CREATED: {"description": "It is told what happens from now on.", "headers": _LOCATION},
        **declared(
            "malformed_body",
            "unauthenticated",
            "too_many_webhooks",
            "body_too_large",
            "invalid_request",
            "database_unavailable",
        ),
    },
)
def create_webhook(
    new: NewWebhook, webhooks: Webhooks, services: ServicesOfProcess, response: Response
) -> WebhookWithSecret:
    """Let an address be told how documents end.

    Its secret is shown in this answer only. A tenant may have ten webhooks.
    """  # noqa: DOC501 - it is the description that users read
    try:
        parse_url(new.url, allow_loopback=services.settings.webhook_allow_loopback)
        endpoint = webhooks.create(new.url, new.event_types, new.description)
    except WebhookTargetError as error:
        raise InvalidFieldsError(FieldProblem("url", str(error))) from error
    except TooManyWebhooksError as error:
        raise ApiError("too_many_webhooks") from error
    view = webhook_with_secret(endpoint)
    response.headers["Location"] = view.links.self
    return view


@router.get(
    "/v1/webhooks",
    responses=declared("unauthenticated", "invalid_request", "database_unavailable"),
)
def list_webhooks(webhooks: Webhooks) -> WebhookList:
    """List all endpoints, oldest first; there are few."""
    return WebhookList(webhooks=[webhook_view(each) for each in webhooks.list_all()])


@router.get("/v1/webhooks/{webhook_id}", responses=declared(*_OF_ONE))
def read_webhook(webhook_id: UUID, webhooks: Webhooks) -> WebhookView:
    """Say how an endpoint fares."""
    return webhook_view(webhooks.get(webhook_id))


@router.delete("/v1/webhooks/{webhook_id}", status_code=_NO_CONTENT, responses=declared(*_OF_ONE))
def delete_webhook(webhook_id: UUID, webhooks: Webhooks) -> None:
    """Remove an endpoint, and what was and would be sent to it."""
    webhooks.remove(webhook_id)


@router.post("/v1/webhooks/{webhook_id}/rotate-secret", responses=declared(*_OF_ONE))
def rotate_webhook_secret(webhook_id: UUID, webhooks: Webhooks) -> WebhookWithSecret:
    """Give an endpoint a new secret; for 24 hours the one of before signs along."""
    return webhook_with_secret(webhooks.rotate_secret(webhook_id))


@router.post("/v1/webhooks/{webhook_id}/enable", responses=declared(*_OF_ONE))
def enable_webhook(webhook_id: UUID, webhooks: Webhooks) -> WebhookView:
    """Let an endpoint that was disabled be told again; what it missed can be replayed."""
    return webhook_view(webhooks.enable(webhook_id))


@router.get("/v1/webhooks/{webhook_id}/deliveries", responses=declared(*_OF_ONE))
def list_webhook_deliveries(
    webhook_id: UUID,
    webhooks: Webhooks,
    limit: Annotated[int, Query(ge=1, le=MAX_DELIVERIES)] = 20,
    cursor: IdCursor = None,
    state: Annotated[DeliveryState | None, Query(description="Only those in this state.")] = None,
) -> DeliveryPage:
    """List what was and will be sent to an endpoint, newest first."""
    found = webhooks.deliveries(
        webhook_id,
        limit=limit + 1,
        before=None if cursor is None else cursors.decode_id(cursor),
        state=state,
    )
    has_more = len(found) > limit
    return DeliveryPage(
        deliveries=[delivery_view(each) for each in found[:limit]],
        next_cursor=cursors.encode_id(found[limit - 1].id) if has_more else None,
    )


@router.post(
    "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay",
    status_code=_ACCEPTED,
    responses=declared("webhook_disabled", *_OF_ONE),
)
def replay_webhook_delivery(
    webhook_id: UUID, delivery_id: UUID, webhooks: Webhooks
) -> DeliveryView:
    """Send a message once more, under the same id, and try for another day."""  # noqa: DOC501 - likewise
    try:
        return delivery_view(webhooks.replay(webhook_id, delivery_id))
    except WebhookDisabledError as error:
        raise ApiError("webhook_disabled") from error
