"""What the API takes and answers about webhooks."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from db.states import DeliveryState
from db.webhook_models import WebhookDelivery, WebhookEndpoint
from db.webhooks import EVENT_TYPES
from workers.webhook_target import MOST_CHARACTERS

WebhookEvent = Literal[
    "document.cancelled", "document.failed", "document.partly_succeeded", "document.succeeded"
]


class NewWebhook(BaseModel):
    """An endpoint to be told how documents end."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(
        min_length=1,
        max_length=MOST_CHARACTERS,
        description="Where to: `https`, a public host; without user, password and fragment.",
    )
    event_types: list[WebhookEvent] = Field(
        default_factory=lambda: list(EVENT_TYPES),  # type: ignore[arg-type] # a test compares both
        min_length=1,
        max_length=len(EVENT_TYPES),
        description="What it is told; by default all.",
    )
    description: str = Field(
        default="",
        max_length=200,
        pattern=r"^[^\x00]*$",
        description="For people; returned as given.",
    )


class WebhookLinks(BaseModel):
    """Addresses that belong to an endpoint, relative to the API's own."""

    self: str
    deliveries: str


class WebhookView(BaseModel):
    """One endpoint, and how it fares."""

    id: UUID
    url: str
    event_types: list[str]
    description: str
    created_at: datetime
    state: Literal["active", "failing", "disabled"] = Field(
        description="`failing`: its last message was not taken. `disabled`: nothing is sent."
    )
    failures: int = Field(description="Since its last success.")
    failing_since: datetime | None
    last_error: str | None = Field(description="Why its last message was not taken.")
    disabled_at: datetime | None
    disabled_reason: str | None = Field(
        description="`gone`: it answered 410. `failing`: it failed for days. `removed`: its "
        "removal was broken off; ask for it again. Null unless disabled."
    )
    links: WebhookLinks


class WebhookWithSecret(WebhookView):
    """An endpoint with its secret, which is shown this once."""

    secret: str = Field(description="`whsec_` and the key in base64; signs every message.")


class WebhookList(BaseModel):
    """All endpoints of a tenant, oldest first."""

    webhooks: list[WebhookView]


class DeliveryView(BaseModel):
    """One message to one endpoint."""

    id: UUID
    message_id: str = Field(description="The header `webhook-id`; the same at every try.")
    type: str
    event_at: datetime
    state: DeliveryState = Field(
        description="`waiting`: it will be tried, again or at all. `delivered`: it was answered "
        "with 2xx. `failed`: it was tried for a day, or its endpoint was disabled."
    )
    attempts: int
    last_attempt_at: datetime | None
    last_status: int | None = Field(description="What the endpoint answered, if it did.")
    last_error: str | None
    next_attempt_at: datetime | None = Field(description="Not before; null when there is none.")
    finished_at: datetime | None
    data: dict[str, Any] = Field(description="What the message tells.")


class DeliveryPage(BaseModel):
    """Some deliveries to an endpoint, newest first."""

    deliveries: list[DeliveryView]
    next_cursor: str | None = Field(description="Send it as `cursor` for more; null at the end.")


def webhook_view(endpoint: WebhookEndpoint) -> WebhookView:
    """Return what the API tells about an endpoint."""
    return WebhookView(**_fields(endpoint))


def webhook_with_secret(endpoint: WebhookEndpoint) -> WebhookWithSecret:
    """Return an endpoint to whoever has just made it or its secret."""
    return WebhookWithSecret(**_fields(endpoint), secret=endpoint.secret)


def delivery_view(delivery: WebhookDelivery) -> DeliveryView:
    """Return what the API tells about a delivery."""
    return DeliveryView(
        id=delivery.id,
        message_id=delivery.message_id,
        type=delivery.type,
        event_at=delivery.event_at,
        state=DeliveryState(delivery.state),
        attempts=delivery.attempt,
        last_attempt_at=delivery.last_attempt_at,
        last_status=delivery.last_status,
        last_error=delivery.last_error,
        next_attempt_at=delivery.dispatch_after,
        finished_at=delivery.finished_at,
        data=delivery.payload,
    )


def _fields(endpoint: WebhookEndpoint) -> dict[str, Any]:
    address = f"/v1/webhooks/{endpoint.id}"
    state = "failing" if endpoint.failures else "active"
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "event_types": endpoint.event_types,
        "description": endpoint.description,
        "created_at": endpoint.created_at,
        "state": state if endpoint.disabled_at is None else "disabled",
        "failures": endpoint.failures,
        "failing_since": endpoint.failing_since,
        "last_error": endpoint.last_error,
        "disabled_at": endpoint.disabled_at,
        "disabled_reason": endpoint.disabled_reason,
        "links": WebhookLinks(self=address, deliveries=f"{address}/deliveries"),
    }
