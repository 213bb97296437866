"""What ``pagefleet reconcile`` counts of its rounds, and what it sees of the broker in them."""

from collections.abc import Mapping

from prometheus_client import Counter, Gauge
from prometheus_client.registry import Collector

ROUNDS = Counter(
    "pagefleet_sweep_rounds",
    "Rounds, by how they ended: `done`, or `broker_away`, `database_away` or `refused` (by the "
    "database) where they broke off.",
    ["outcome"],
    registry=None,
)
LAST_ROUND = Gauge(
    "pagefleet_sweep_last_round_timestamp_seconds",
    "When the last round ended that was `done`; seconds since 1970.",
    registry=None,
)
SENT = Counter(
    "pagefleet_sweep_messages_sent",
    "Messages that were sent, by what they ask for.",
    ["work"],
    registry=None,
)
GIVEN_UP = Counter(
    "pagefleet_sweep_given_up",
    "What had used up its attempts: `documents_and_pages` that ended for it, and `chunks` that "
    "were taken apart into their pages.",
    ["what"],
    registry=None,
)
MESSAGES = Gauge(
    "pagefleet_queue_messages",
    "Messages that wait in the broker, by queue; the rest of the work waits in Postgres.",
    ["queue"],
    registry=None,
)
UNACKED = Gauge(
    "pagefleet_unacked_messages",
    "Messages that workers hold and have not acknowledged.",
    registry=None,
)
UNACKED_OLDEST = Gauge(
    "pagefleet_unacked_oldest_seconds",
    "For how long the oldest of these has been held; 0 without any.",
    registry=None,
)
VISIBILITY_TIMEOUT = Gauge(
    "pagefleet_visibility_timeout_seconds",
    "After how long such a message is delivered again: `PAGEFLEET_REDIS_VISIBILITY_TIMEOUT_S`.",
    registry=None,
)
GROUP: tuple[Collector, ...] = (
    ROUNDS,
    LAST_ROUND,
    SENT,
    GIVEN_UP,
    MESSAGES,
    UNACKED,
    UNACKED_OLDEST,
    VISIBILITY_TIMEOUT,
)


def count_round(outcome: str) -> None:
    """Count a round that ended."""
    ROUNDS.labels(outcome).inc()
    if outcome == "done":
        LAST_ROUND.set_to_current_time()


def count_sent(work: str, messages: int) -> None:
    """Count messages that a round sent."""
    SENT.labels(work).inc(messages)


def count_given_up(*, documents_and_pages: int, chunks: int) -> None:
    """Count what a round found to have used up its attempts."""
    GIVEN_UP.labels("documents_and_pages").inc(documents_and_pages)
    GIVEN_UP.labels("chunks").inc(chunks)


def note_broker(waiting: Mapping[str, int], *, unacked: int, unacked_oldest_s: float) -> None:
    """Show what a round saw of the broker."""
    for queue, messages in waiting.items():
        MESSAGES.labels(queue).set(messages)
    UNACKED.set(unacked)
    UNACKED_OLDEST.set(unacked_oldest_s)
