"""Deliver webhooks: tell the endpoints of tenants how their documents ended.

What has to be sent are rows, written in the transaction of what they tell. Two processes may do
this at once. Dying leaves the row to the end of its lease, so a message may come twice, under the
same id, and none is lost.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import orjson
import structlog

from db import webhook_deliveries
from db.engine import Transaction
from db.errors import DatabaseError, DatabaseUnavailableError
from db.webhook_deliveries import DueDelivery, Failure
from workers.webhook_metrics import count_delivery, count_disabled
from workers.webhook_post import WebhookPoster, WebhookPostError
from workers.webhook_signature import sign
from workers.webhook_target import WebhookTargetError, parse_url

log = structlog.get_logger(__name__)

# Slow endpoints keep their own senders, and no more unless the others are idle.
MOST_PER_ENDPOINT = 4
_TIDY_INTERVAL_S = 60.0
_TIDIED_AT_ONCE = 1_000
# Past the time for sending: resolving a name may take that long, and recording what came of it.
_LEASE_MARGIN_S = 90.0
_SUCCESSES = range(200, 300)
_USER_AGENT = "Pagefleet-Webhooks/1"


@dataclass(frozen=True, slots=True)
class DeliveryRules:
    """How webhooks are sent; see the settings of these names."""

    senders: int
    timeout_s: float
    interval_s: float
    disable_after_s: float
    keep_s: float
    allow_loopback: bool

    @property
    def most_per_tenant(self) -> int:
        """How many senders all endpoints of one tenant together may keep."""
        return max(1, self.senders // 2)


def deliver_webhook(
    due: DueDelivery, *, transaction: Transaction, poster: WebhookPoster, rules: DeliveryRules
) -> None:
    """Send one message and record what came of it; no errors but those of the database."""
    outcome = _send(due, poster, rules)
    fields = {
        "delivery_id": str(due.delivery_id),
        "endpoint_id": str(due.endpoint_id),
        "attempt": due.attempt,
    }
    if isinstance(outcome, int):
        with transaction() as session:
            webhook_deliveries.note_delivered(session, due, status=outcome)
        count_delivery("delivered")
        log.info("webhook delivered", status=outcome, **fields)
        return
    with transaction() as session:
        is_disabled = webhook_deliveries.note_failed(
            session, due, outcome, disable_after_s=rules.disable_after_s
        )
    count_delivery("failed")
    log.warning("webhook not delivered", code=outcome.code, **fields)
    if is_disabled:
        count_disabled()
        log.error("webhook endpoint disabled", endpoint_id=fields["endpoint_id"], code=outcome.code)


def deliver_until(
    stop: threading.Event,
    *,
    transaction: Transaction,
    poster: WebhookPoster,
    rules: DeliveryRules,
    after_round: Callable[[], None] = lambda: None,
) -> None:
    """Send what is due, many at a time, until ``stop`` is set; what is being sent is waited for."""
    sending: set[Future[None]] = set()
    tidy_at = time.monotonic()
    with ThreadPoolExecutor(rules.senders, thread_name_prefix="webhook") as senders:
        while not stop.is_set():
            sending = {each for each in sending if not each.done()}
            taken = 0
            try:
                if time.monotonic() >= tidy_at:
                    is_more = _tidy(transaction, rules)
                    tidy_at = time.monotonic() + (0 if is_more else _TIDY_INTERVAL_S)
                for due in _take(transaction, rules, room=rules.senders - len(sending)):
                    sending.add(
                        senders.submit(
                            _deliver_logged,
                            due,
                            transaction=transaction,
                            poster=poster,
                            rules=rules,
                        )
                    )
                    taken += 1
            except DatabaseUnavailableError:
                log.warning("round skipped, the database is not reachable")
            except DatabaseError:
                log.exception("round broken off")
            after_round()
            if not taken or len(sending) >= rules.senders:
                _wait_for_room(sending, stop, interval_s=rules.interval_s)


def _wait_for_room(sending: set[Future[None]], stop: threading.Event, *, interval_s: float) -> None:
    """Wait until there may be more to take: a sender is free, or something has come to be due."""
    if sending:
        # Most often the next message to the same endpoint waits for one of them.
        wait(sending, timeout=interval_s, return_when=FIRST_COMPLETED)
    else:
        stop.wait(interval_s)


def _take(transaction: Transaction, rules: DeliveryRules, *, room: int) -> list[DueDelivery]:
    """Take a few messages of each endpoint, and more where that leaves half of the senders idle."""
    if room <= 0:
        return []
    lease_s = rules.timeout_s + _LEASE_MARGIN_S
    with transaction() as session:
        taken = webhook_deliveries.take(
            session,
            room=room,
            per_endpoint=MOST_PER_ENDPOINT,
            per_tenant=rules.most_per_tenant,
            lease_s=lease_s,
        )
        spare = room - len(taken) - (rules.senders - rules.most_per_tenant)
        if spare > 0:
            taken += webhook_deliveries.take(
                session,
                room=spare,
                per_endpoint=rules.most_per_tenant,
                per_tenant=rules.most_per_tenant,
                lease_s=lease_s,
                only_healthy=True,
            )
    return taken


def _tidy(transaction: Transaction, rules: DeliveryRules) -> bool:
    """End what nobody waits for, and remove what is old; return whether there is more of it."""
    with transaction() as session:
        ended = webhook_deliveries.end_hopeless(session, limit=_TIDIED_AT_ONCE)
    with transaction() as session:
        removed = webhook_deliveries.clear(
            session, older_than_s=rules.keep_s, limit=_TIDIED_AT_ONCE
        )
    if ended or removed:
        log.info("deliveries tidied", given_up=ended, removed=removed)
    return _TIDIED_AT_ONCE in {ended, removed}


def _deliver_logged(
    due: DueDelivery, *, transaction: Transaction, poster: WebhookPoster, rules: DeliveryRules
) -> None:
    try:
        deliver_webhook(due, transaction=transaction, poster=poster, rules=rules)
    except DatabaseUnavailableError:
        log.warning("delivery not recorded, it comes again", delivery_id=str(due.delivery_id))
    except Exception:
        # Nobody looks at what a thread ends with; the lease ends, and it is tried again.
        log.exception("delivery not recorded", delivery_id=str(due.delivery_id))


def _send(due: DueDelivery, poster: WebhookPoster, rules: DeliveryRules) -> int | Failure:
    """Return the status of a success, or why there is none."""
    body = orjson.dumps({
        "type": due.type,
        "timestamp": due.event_at.isoformat(),
        "data": due.payload,
    })
    timestamp_s = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": _USER_AGENT,
        "webhook-id": due.message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign(due.message_id, timestamp_s, body, secrets=due.secrets),
    }
    try:
        # Once more, since the setting may have changed, or the rules.
        url = parse_url(due.url, allow_loopback=rules.allow_loopback)
        status = poster.post(url, body, headers)
    except WebhookTargetError:
        return Failure("forbidden_address")
    except WebhookPostError as error:
        return Failure(error.code)
    except Exception:
        # Whatever it was, it was a try: one that is not recorded has no pause and no end.
        log.exception("delivery broken off", delivery_id=str(due.delivery_id))
        return Failure("internal")
    return status if status in _SUCCESSES else Failure(f"status_{status}", status)
