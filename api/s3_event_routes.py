"""Storage events over HTTP: told by MinIO, Ceph and SeaweedFS, answered after the COMMIT."""

import base64
import binascii
import hmac
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Request, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field

from api.errors import ApiError
from api.event_intake import EventIntake
from api.intake_metrics import count_event
from api.ledger import ServicesOfProcess
from api.problems import declared
from api.s3_events.event import ObjectEvent, UnreadableEventError
from api.s3_events.parse import parse
from api.take_in_object import Outcome, TakeIn
from storage.errors import SourceRefusedError

log = structlog.get_logger(__name__)

router = APIRouter(tags=["events"])

_bearer = HTTPBearer(
    scheme_name="EventToken",
    auto_error=False,
    description="`PAGEFLEET_S3_EVENTS_TOKEN`, as bearer token or as password of any user.",
)


class EventsView(BaseModel):
    """What became of the new objects that a message told of."""

    accepted: int = Field(description="New documents.")
    known: int = Field(description="Objects that are documents already.")
    refused: int = Field(description="Objects that the store does not hand out.")
    ignored: int = Field(description="Objects that are gone, outdated, or not watched.")


def require_token(
    request: Request, services: ServicesOfProcess, _: Annotated[object, Depends(_bearer)]
) -> None:
    """Refuse who does not know the token.

    Raises:
        ApiError: there is no such address without a token, or another one was sent.
    """
    token = services.settings.s3_events_token
    if token is None:
        raise ApiError("not_found")
    sent = _sent_secret(request.headers.get("Authorization", ""))
    if not hmac.compare_digest(sent.encode(), token.get_secret_value().encode()):
        raise ApiError("unauthenticated", headers={"WWW-Authenticate": 'Bearer realm="pagefleet"'})


@router.head(
    "/v1/events/s3",
    dependencies=[Depends(require_token)],
    responses=declared("unauthenticated", "not_found"),
)
async def probe_events() -> Response:
    """Answer a sender that asks whether anybody listens."""
    return Response()


@router.post(
    "/v1/events/s3",
    dependencies=[Depends(require_token)],
    responses=declared(
        "unauthenticated",
        "not_found",
        "body_too_large",
        "invalid_event",
        "batch_closed",
        "unknown_batch",
        "source_refused",
        "system_full",
        "storage_unavailable",
        "database_unavailable",
    ),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "What the object store sends; its form tells the sender.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
async def receive_events(request: Request, services: ServicesOfProcess) -> EventsView:
    """Make documents of new objects in watched places.

    `200` comes when all that the message tells of is done with: its documents stand, or there is
    nothing to be made of it. An object that the store refuses is logged and counted, and left to
    `reconcile --prefix`. After any other answer the sender has to send it again.
    """
    events = _events_in(await request.body())
    intake = EventIntake(
        services.settings,
        transaction=services.transaction,
        store=services.store,
        admission=services.admission,
    )
    outcomes = await services.in_accepting_thread(_take_in_all, events, intake.take_in)
    counted = [outcomes[each] for each in (Outcome.ACCEPTED, Outcome.KNOWN, Outcome.REFUSED)]
    accepted, known, refused = counted
    return EventsView(
        accepted=accepted, known=known, refused=refused, ignored=outcomes.total() - sum(counted)
    )


def _events_in(body: bytes) -> Sequence[ObjectEvent]:
    """Return what a body tells of.

    Raises:
        ApiError: it is of no sender that is known.
    """
    try:
        return parse(body)
    except UnreadableEventError as error:
        count_event("unreadable")
        raise ApiError("invalid_event") from error


def _take_in_all(events: Sequence[ObjectEvent], take_in: TakeIn) -> Counter[Outcome]:
    return Counter(_take_in(event, take_in) for event in events)


def _take_in(event: ObjectEvent, take_in: TakeIn) -> Outcome:
    """Take one event in; an object that the store refuses must not hold up those behind it.

    A sender that keeps the order would send it for ever, and nothing after it.
    """
    try:
        return take_in(event)
    except SourceRefusedError as error:
        log.error("object refused", bucket=event.bucket, reason=str(error))  # noqa: TRY400 - the answer says it all
        return Outcome.REFUSED


def _sent_secret(authorization: str) -> str:
    """Return the token of a bearer, or the password of Basic: some senders have only an address."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "basic":
        return value if scheme.lower() == "bearer" else ""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
