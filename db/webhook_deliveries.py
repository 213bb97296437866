"""Deliveries of webhooks: what has to be sent, by whom it is being sent, and what came of it.

Rows of endpoints are locked before those of their deliveries, as by whoever removes an endpoint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Float, case, func, literal, or_, select, text, update
from sqlalchemy.orm import Session

from db.errors import RowNotFoundError
from db.states import DeliveryState
from db.webhook_models import WebhookDelivery, WebhookEndpoint

RETRIED_FOR = timedelta(hours=24)
_SHORTEST_RETRY, _LONGEST_RETRY = timedelta(seconds=5), timedelta(hours=2)
_SHORTEST_REST, _LONGEST_REST = timedelta(seconds=1), timedelta(minutes=5)

GONE = "gone"
FAILING = "failing"
DISABLED = "endpoint_disabled"
EXPIRED = "expired"

# Each LIMIT ends the search as soon as there is enough, and only what is taken is locked.
_TAKE = text("""
    WITH due AS MATERIALIZED (
      SELECT found.id AS due_id
      FROM (
        SELECT tenant FROM webhook_endpoints
        WHERE disabled_at IS NULL AND (rest_until IS NULL OR rest_until <= now())
        GROUP BY tenant ORDER BY random()
      ) AS told
      CROSS JOIN LATERAL (
        SELECT waiting.id
        FROM (
          SELECT id FROM webhook_endpoints
          WHERE tenant = told.tenant AND disabled_at IS NULL
            AND (rest_until IS NULL OR rest_until <= now())
            AND (failures = 0 OR NOT :only_healthy)
          ORDER BY random()
        ) AS endpoint
        CROSS JOIN LATERAL (
          SELECT id FROM webhook_deliveries
          WHERE endpoint_id = endpoint.id AND dispatch_after <= now()
          ORDER BY dispatch_after
          LIMIT greatest(0, :per_endpoint - (
            SELECT count(*) FROM webhook_deliveries AS held
            WHERE held.endpoint_id = endpoint.id AND held.lease_expires_at > now()
          ))
          FOR UPDATE SKIP LOCKED
        ) AS waiting
        LIMIT greatest(0, :per_tenant - (
          SELECT count(*) FROM webhook_deliveries AS held
          JOIN webhook_endpoints AS holder ON holder.id = held.endpoint_id
          WHERE holder.tenant = told.tenant AND held.lease_expires_at > now()
        ))
      ) AS found
      LIMIT :room
    )
    UPDATE webhook_deliveries AS delivery
    SET attempt = attempt + 1, last_attempt_at = now(),
      lease_expires_at = now() + make_interval(secs => :lease_s),
      dispatch_after = now() + make_interval(secs => :lease_s),
      retry_until = CASE WHEN attempt = 0 AND failures = 0
        THEN now() + CAST(:retried_for AS interval) ELSE retry_until END
    FROM due, webhook_endpoints AS endpoint
    WHERE delivery.id = due_id AND endpoint.id = delivery.endpoint_id
    RETURNING delivery.id, endpoint_id, attempt, message_id, type, payload, event_at, url,
      secret,
      CASE WHEN previous_secret_until > now() THEN previous_secret END AS previous_secret
""")


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """The right to try a delivery until the lease ends; ``attempt`` is the fencing token.

    Attributes:
        delivery_id: its id.
        endpoint_id: whose it is.
        attempt: which try this is, from 1.
        message_id: of the event.
        type: of the event.
        payload: what is told.
        event_at: when it happened.
        url: where it goes.
        secrets: what it is signed with; the newest first.
    """

    delivery_id: UUID
    endpoint_id: UUID
    attempt: int
    message_id: str
    type: str
    payload: dict[str, Any]
    event_at: datetime
    url: str
    secrets: Sequence[str]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a try failed; ``status``: what the endpoint answered, if it did."""

    code: str
    status: int | None = None

    @property
    def is_gone(self) -> bool:
        return self.status == 410  # noqa: PLR2004 - "Gone"


def take(
    session: Session,
    *,
    room: int,
    per_endpoint: int,
    per_tenant: int,
    lease_s: float,
    only_healthy: bool = False,
) -> list[DueDelivery]:
    """Take due deliveries, the oldest of each endpoint first.

    Tenants come in any order, and so do the endpoints of each, so that none is always behind the
    others. One that failed a moment ago rests, and one that is disabled gets nothing. Where it was
    not the endpoint that kept a message waiting, its day begins with its first try. Two may take
    at once.

    Args:
        session: an open transaction.
        room: the most that are taken.
        per_endpoint: the most that are held of one endpoint then, by whomever.
        per_tenant: likewise of all endpoints of a tenant.
        lease_s: how long what is taken is held.
        only_healthy: nothing of endpoints that have failed since their last success.
    """
    rows = session.execute(
        _TAKE,
        {
            "room": room,
            "per_endpoint": per_endpoint,
            "per_tenant": per_tenant,
            "lease_s": lease_s,
            "only_healthy": only_healthy,
            "retried_for": RETRIED_FOR,
        },
    )
    return [
        DueDelivery(
            delivery_id=row.id,
            endpoint_id=row.endpoint_id,
            attempt=row.attempt,
            message_id=row.message_id,
            type=row.type,
            payload=row.payload,
            event_at=row.event_at,
            url=row.url,
            secrets=[each for each in (row.secret, row.previous_secret) if each],
        )
        for row in rows
    ]


def note_delivered(session: Session, due: DueDelivery, *, status: int) -> None:
    """Record that an endpoint has taken a message; nothing where somebody else has it by now."""
    session.execute(
        update(WebhookEndpoint)
        # Most often there is nothing to change, and the row of an endpoint is everybody's.
        .where(
            WebhookEndpoint.id == due.endpoint_id,
            or_(WebhookEndpoint.failures > 0, WebhookEndpoint.last_error.is_not(None)),
        )
        .values(failures=0, failing_since=None, rest_until=None, last_error=None)
    )
    session.execute(
        _held(due).values(
            state=DeliveryState.DELIVERED,
            dispatch_after=None,
            lease_expires_at=None,
            last_status=status,
            last_error=None,
            finished_at=func.now(),
        )
    )


def note_failed(
    session: Session, due: DueDelivery, failure: Failure, *, disable_after_s: float
) -> bool:
    """Record a try that failed, and put the next one off; return whether the endpoint is disabled.

    A delivery waits about as long as it has been failing before it is tried again, and so does its
    endpoint, for a shorter time, before it is tried with anything. Past its day a delivery is given
    up.

    Args:
        session: an open transaction.
        due: what ``take`` returned.
        failure: what came of it.
        disable_after_s: for how long the endpoint may fail without one success.
    """
    failing_since = func.coalesce(WebhookEndpoint.failing_since, func.now())
    is_disabled = session.execute(
        update(WebhookEndpoint)
        .where(WebhookEndpoint.id == due.endpoint_id)
        .values(
            failures=WebhookEndpoint.failures + 1,
            failing_since=failing_since,
            rest_until=func.now() + _pause(failing_since, _SHORTEST_REST, _LONGEST_REST),
            last_error=failure.code,
            **_disabled_if(failure, disable_after_s),
        )
        .returning(WebhookEndpoint.disabled_at.is_not(None))
        .execution_options(synchronize_session=False)
    ).scalar()
    is_over = func.now() >= WebhookDelivery.retry_until
    started_at = WebhookDelivery.retry_until - RETRIED_FOR
    next_try = func.least(
        func.now() + _pause(started_at, _SHORTEST_RETRY, _LONGEST_RETRY),
        WebhookDelivery.retry_until,
    )
    session.execute(
        _held(due).values(
            state=case((is_over, DeliveryState.FAILED), else_=DeliveryState.WAITING),
            dispatch_after=case((is_over, None), else_=next_try),
            finished_at=case((is_over, func.now()), else_=None),
            lease_expires_at=None,
            last_status=failure.status,
            last_error=failure.code,
        )
    )
    return bool(is_disabled)


def end_hopeless(session: Session, *, limit: int) -> int:
    """Fail what waits for endpoints that are disabled, or have failed for a day; return how many.

    An endpoint that fails is tried with a few messages and not with each, so some are never tried.
    One that takes messages gets them all, however late: it is we who are slow, or were not there.
    So one that failed before we were away is tried once more first.
    """
    rows = session.execute(
        text("""
            WITH hopeless AS MATERIALIZED (
              SELECT delivery.id AS hopeless_id, disabled_at IS NOT NULL AS is_disabled
              FROM webhook_deliveries AS delivery
              JOIN webhook_endpoints AS endpoint ON endpoint.id = endpoint_id
              WHERE dispatch_after IS NOT NULL
                AND (lease_expires_at IS NULL OR lease_expires_at < now())
                AND (disabled_at IS NOT NULL OR (
                  retry_until < now() - interval '1 hour'
                  AND failing_since < now() - CAST(:retried_for AS interval)
                  AND rest_until > now() - interval '1 hour'
                ))
              LIMIT :limit FOR UPDATE OF delivery SKIP LOCKED
            )
            UPDATE webhook_deliveries
            SET state = 'failed', dispatch_after = NULL, lease_expires_at = NULL,
              finished_at = now(),
              last_error = CASE WHEN is_disabled THEN :disabled
                ELSE coalesce(last_error, :expired) END
            FROM hopeless WHERE id = hopeless_id
            RETURNING id
        """),
        {
            "limit": limit,
            "disabled": DISABLED,
            "expired": EXPIRED,
            "retried_for": RETRIED_FOR,
        },
    )
    return len(rows.all())


def clear(session: Session, *, older_than_s: float, limit: int) -> int:
    """Remove deliveries that nobody has to look at any more; return how many."""
    rows = session.execute(
        text("""
            DELETE FROM webhook_deliveries WHERE id IN (
              SELECT id FROM webhook_deliveries
              WHERE dispatch_after IS NULL AND id < CAST(:before AS uuid)
              ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
            ) RETURNING id
        """),
        {"before": _first_id_of(session, older_than_s), "limit": limit},
    )
    return len(rows.all())


def remove_some(session: Session, endpoint_id: UUID, *, limit: int) -> int:
    """Remove deliveries to an endpoint, those that somebody is changing excepted; return how many.

    Fewer than ``limit``: there are hardly any left.
    """
    rows = session.execute(
        text("""
            DELETE FROM webhook_deliveries WHERE id IN (
              SELECT id FROM webhook_deliveries WHERE endpoint_id = :endpoint_id
              ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
            ) RETURNING id
        """),
        {"endpoint_id": endpoint_id, "limit": limit},
    )
    return len(rows.all())


def list_page(
    session: Session,
    endpoint_id: UUID,
    *,
    limit: int,
    before: UUID | None = None,
    state: DeliveryState | None = None,
) -> Sequence[WebhookDelivery]:
    """Return deliveries to an endpoint, newest first; ids are time-ordered."""
    query = select(WebhookDelivery).where(WebhookDelivery.endpoint_id == endpoint_id)
    if state is not None:
        query = query.where(WebhookDelivery.state == state)
    if before is not None:
        query = query.where(WebhookDelivery.id < before)
    return session.scalars(query.order_by(WebhookDelivery.id.desc()).limit(limit)).all()


def replay(session: Session, endpoint_id: UUID, delivery_id: UUID) -> WebhookDelivery:
    """Let a delivery be tried from the start, at once; who tries it just now may send it too.

    Raises:
        RowNotFoundError: the endpoint has no such delivery.
    """
    replayed = session.scalars(
        update(WebhookDelivery)
        .where(WebhookDelivery.id == delivery_id, WebhookDelivery.endpoint_id == endpoint_id)
        .values(
            state=DeliveryState.WAITING,
            dispatch_after=func.now(),
            lease_expires_at=None,
            retry_until=func.now() + RETRIED_FOR,
            finished_at=None,
            last_error=None,
            last_status=None,
        )
        .returning(WebhookDelivery)
        .execution_options(synchronize_session=False, populate_existing=True)
    ).one_or_none()
    if replayed is None:
        raise RowNotFoundError(f"no delivery {delivery_id}")
    return replayed


def _held(due: DueDelivery) -> Any:  # noqa: ANN401 - an UPDATE that is not finished
    return (
        update(WebhookDelivery)
        .where(
            WebhookDelivery.id == due.delivery_id,
            WebhookDelivery.attempt == due.attempt,
            WebhookDelivery.lease_expires_at.is_not(None),
        )
        .execution_options(synchronize_session=False)
    )


def _pause(
    since: ColumnElement[Any], shortest: timedelta, longest: timedelta
) -> ColumnElement[timedelta]:
    """Return the time that has passed, within bounds, and a quarter more or less at random."""
    bounded = func.least(func.greatest(func.now() - since, shortest), longest)
    return bounded * (literal(0.75, Float) + func.random(type_=Float) / 2)


def _disabled_if(failure: Failure, disable_after_s: float) -> dict[str, Any]:
    if failure.is_gone:
        return {"disabled_at": func.now(), "disabled_reason": GONE}
    fails_for_long = WebhookEndpoint.failing_since < func.now() - timedelta(seconds=disable_after_s)
    return {
        "disabled_at": case((fails_for_long, func.now()), else_=WebhookEndpoint.disabled_at),
        "disabled_reason": case((fails_for_long, FAILING), else_=WebhookEndpoint.disabled_reason),
    }


def _first_id_of(session: Session, older_than_s: float) -> UUID:
    """Return the lowest id that a row of this age may have."""
    moment = session.execute(
        text("SELECT extract(epoch FROM now()) * 1000 - :ms"), {"ms": older_than_s * 1_000}
    ).scalar_one()
    return UUID(int=int(moment) << 80)
