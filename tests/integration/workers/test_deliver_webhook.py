"""Messages on their way from the end of a document to an endpoint that checks them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog
from sqlalchemy import text

from db import cancelling, webhook_deliveries, webhooks
from db.engine import Database
from db.webhook_models import WebhookEndpoint
from db.webhooks import EVENT_TYPES
from tests.support.api_server import wait_until
from tests.support.guide_blocks import blocks_run_by
from tests.support.rows import TENANT, add_document
from tests.support.webhook_receiver import ReceivedWebhook, receiving
from workers.deliver_webhook import DeliveryRules, deliver_until, deliver_webhook
from workers.webhook_post import WebhookPoster

RULES = DeliveryRules(
    senders=8,
    timeout_s=30,
    interval_s=0.05,
    disable_after_s=86_400,
    keep_s=86_400,
    allow_loopback=True,
)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, pool_size=2, max_connections=30)
    yield database
    database.dispose()


def add_endpoint(database: Database, url: str, *, tenant: str = TENANT) -> tuple[UUID, str]:
    with database.transaction() as session:
        endpoint = webhooks.create(
            session, tenant=tenant, url=url, event_types=EVENT_TYPES, description=""
        )
    return endpoint.id, endpoint.secret


def end_documents(database: Database, count: int, *, tenant: str = TENANT) -> list[UUID]:
    with database.transaction() as session:
        ended = [add_document(session, tenant=tenant) for _ in range(count)]
        for document_id in ended:
            cancelling.cancel(session, document_id, tenant=tenant)
    return ended


def hurry(database: Database) -> None:
    """Let the rests and pauses of everything that nobody is sending be over."""
    with database.transaction() as session:
        session.execute(text("UPDATE webhook_endpoints SET rest_until = NULL"))
        session.execute(
            text(
                "UPDATE webhook_deliveries SET dispatch_after = now()"
                " WHERE dispatch_after IS NOT NULL AND lease_expires_at IS NULL"
            )
        )


def endpoint_of(database: Database, endpoint_id: UUID) -> WebhookEndpoint:
    with database.transaction() as session:
        return webhooks.get(session, endpoint_id, tenant=TENANT)


def states(database: Database, endpoint_id: UUID) -> list[str]:
    with database.transaction() as session:
        found = webhook_deliveries.list_page(session, endpoint_id, limit=1_000)
        return [delivery.state for delivery in found]


@contextmanager
def delivering(
    database: Database, *, rules: DeliveryRules = RULES, count: int = 1
) -> Iterator[None]:
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=deliver_until,
            args=[stop],
            kwargs={
                "transaction": database.transaction,
                "poster": WebhookPoster(
                    timeout_s=rules.timeout_s, allow_loopback=rules.allow_loopback
                ),
                "rules": rules,
            },
        )
        for _ in range(count)
    ]
    with structlog.testing.capture_logs():
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def guide_check() -> Callable[[Mapping[str, str], bytes, str], bool]:
    """Return the function with which the guide says that a receiver checks a message."""
    (block,) = blocks_run_by(__file__)
    names: dict[str, Any] = {}
    exec(block.code, names)  # noqa: S102 - our own guide
    check: Callable[[Mapping[str, str], bytes, str], bool] = names["is_from_pagefleet"]
    return check


def require_signed(got: ReceivedWebhook, secret: str) -> None:
    assert guide_check()(got.headers, got.body, secret)


def failing_first(count: int, status: int) -> Callable[[ReceivedWebhook], int]:
    answers = iter([status] * count)
    return lambda _: next(answers, 204)


def test_the_end_of_a_document_arrives_signed(database: Database) -> None:
    with receiving() as receiver, delivering(database):
        endpoint_id, secret = add_endpoint(database, receiver.url)
        (document_id,) = end_documents(database, 1)
        wait_until(lambda: states(database, endpoint_id) == ["delivered"], what="the delivery")

    (got,) = receiver.received
    require_signed(got, secret)
    assert got.headers["content-type"] == "application/json"
    assert got.content["type"] == "document.cancelled"
    assert got.content["data"]["document_id"] == str(document_id)
    assert set(got.content) == {"type", "timestamp", "data"}
    is_from_pagefleet = guide_check()
    assert not is_from_pagefleet(got.headers, got.body + b" ", secret)
    assert not is_from_pagefleet(got.headers, got.body, "whsec_AAAA")
    assert not is_from_pagefleet({**got.headers, "webhook-id": "msg_other"}, got.body, secret)
    assert not is_from_pagefleet({**got.headers, "webhook-timestamp": "1"}, got.body, secret)


@pytest.mark.parametrize("status", [301, 404, 429, 500])
def test_what_is_no_success_is_tried_again_under_the_same_id(
    database: Database, status: int
) -> None:
    with receiving(failing_first(2, status)) as receiver, delivering(database):
        endpoint_id, secret = add_endpoint(database, receiver.url)
        end_documents(database, 1)

        def is_delivered() -> bool:
            hurry(database)
            return states(database, endpoint_id) == ["delivered"]

        wait_until(is_delivered, what="the third try")

    assert len(receiver.received) == 3
    assert len({got.message_id for got in receiver.received}) == 1
    assert len({got.body for got in receiver.received}) == 1
    for got in receiver.received:
        require_signed(got, secret)


def test_a_try_that_breaks_off_unforeseen_is_a_try(database: Database) -> None:
    def resolve(_host: str, _port: int) -> Sequence[str]:
        raise LookupError("as nothing that is foreseen")

    endpoint_id, _ = add_endpoint(database, "https://hooks.example.com")
    end_documents(database, 1)
    with database.transaction() as session:
        (due,) = webhook_deliveries.take(session, room=1, per_endpoint=1, per_tenant=1, lease_s=60)

    with structlog.testing.capture_logs() as logged:
        deliver_webhook(
            due,
            transaction=database.transaction,
            poster=WebhookPoster(timeout_s=30, allow_loopback=True, resolve=resolve),
            rules=RULES,
        )

    with database.transaction() as session:
        (row,) = webhook_deliveries.list_page(session, endpoint_id, limit=1)
        endpoint = webhooks.get(session, endpoint_id, tenant=TENANT)
    assert (row.state, row.last_error, row.lease_expires_at) == ("waiting", "internal", None)
    assert (endpoint.failures, endpoint.rest_until is None) == (1, False)
    assert "delivery broken off" in [line["event"] for line in logged]


def test_many_senders_deliver_each_message_once(database: Database) -> None:
    with receiving() as receiver, delivering(database, count=3):
        endpoint_id, _ = add_endpoint(database, receiver.url)
        end_documents(database, 40)
        wait_until(lambda: set(states(database, endpoint_id)) == {"delivered"}, what="all of them")

    ids = [got.message_id for got in receiver.received]
    assert len(ids) == len(set(ids)) == 40


def test_an_endpoint_gets_message_after_message_without_a_pause(database: Database) -> None:
    rules = replace(RULES, interval_s=60)  # a few pauses are longer than the test waits
    with receiving() as receiver:
        endpoint_id, _ = add_endpoint(database, receiver.url)
        end_documents(database, 200)
        with delivering(database, rules=rules):
            wait_until(lambda: set(states(database, endpoint_id)) == {"delivered"}, what="all")

    assert len({got.message_id for got in receiver.received}) == 200


def test_an_endpoint_has_half_of_the_senders_while_the_others_are_idle(
    database: Database,
) -> None:
    is_over = threading.Event()

    def hang(_: ReceivedWebhook) -> int:
        is_over.wait(60)
        return 204

    rules = replace(RULES, senders=24)
    with receiving(hang) as slow, receiving() as quick, delivering(database, rules=rules):
        add_endpoint(database, slow.url, tenant="slow")
        quick_id, _ = add_endpoint(database, quick.url, tenant="quick")
        end_documents(database, 40, tenant="slow")
        wait_until(lambda: len(slow.received) == 12, what="the slow one's share")
        end_documents(database, 40, tenant="quick")
        wait_until(lambda: set(states(database, quick_id)) == {"delivered"}, what="the quick one")
        at_the_slow_one = len(slow.received)
        is_over.set()

    assert at_the_slow_one == 12


def test_slow_endpoints_of_several_tenants_leave_senders_idle(database: Database) -> None:
    is_over = threading.Event()

    def hang(_: ReceivedWebhook) -> int:
        is_over.wait(60)
        return 204

    rules = replace(RULES, senders=24)
    with receiving(hang) as slow, receiving() as quick:
        for tenant in ("slow", "slower"):
            add_endpoint(database, slow.url, tenant=tenant)
            end_documents(database, 20, tenant=tenant)
        quick_id, _ = add_endpoint(database, quick.url, tenant="quick")
        with delivering(database, rules=rules):
            wait_until(lambda: len(slow.received) == 12, what="what is spare")
            end_documents(database, 20, tenant="quick")
            wait_until(lambda: set(states(database, quick_id)) == {"delivered"}, what="the quick")
            at_the_slow_ones = len(slow.received)
            is_over.set()

    assert at_the_slow_ones == 12


def test_slow_endpoints_do_not_hold_up_the_others(database: Database) -> None:
    is_over = threading.Event()

    def hang(_: ReceivedWebhook) -> int:
        is_over.wait(60)
        return 204

    with receiving(hang) as slow, receiving() as quick, delivering(database):
        slow_id, _ = add_endpoint(database, slow.url, tenant="slow")
        quick_id, _ = add_endpoint(database, quick.url, tenant="quick")
        end_documents(database, 20, tenant="slow")
        wait_until(lambda: len(slow.received) == 4, what="the slow one's share")
        end_documents(database, 20, tenant="quick")
        wait_until(lambda: set(states(database, quick_id)) == {"delivered"}, what="the quick one")
        at_the_slow_one = len(slow.received)
        is_over.set()
        wait_until(lambda: set(states(database, slow_id)) == {"delivered"}, what="the slow one")

    assert at_the_slow_one == 4


def test_one_tenant_with_many_slow_endpoints_keeps_half_of_the_senders(
    database: Database,
) -> None:
    is_over = threading.Event()

    def hang(_: ReceivedWebhook) -> int:
        is_over.wait(60)
        return 204

    with receiving(hang) as slow, receiving() as quick, delivering(database):
        for _ in range(webhooks.MOST_PER_TENANT):
            add_endpoint(database, slow.url, tenant="slow")
        quick_id, _ = add_endpoint(database, quick.url, tenant="quick")
        end_documents(database, 4, tenant="slow")
        wait_until(lambda: len(slow.received) == 4, what="the slow one's share")
        end_documents(database, 20, tenant="quick")
        wait_until(lambda: set(states(database, quick_id)) == {"delivered"}, what="the quick one")
        at_the_slow_ones = len(slow.received)
        is_over.set()

    assert at_the_slow_ones == RULES.senders // 2


def test_an_endpoint_that_is_gone_is_left_alone(database: Database) -> None:
    with receiving(lambda _: 410) as receiver, delivering(database):
        endpoint_id, _ = add_endpoint(database, receiver.url)
        end_documents(database, 1)
        wait_until(
            lambda: endpoint_of(database, endpoint_id).disabled_reason == "gone",
            what="the end of the endpoint",
        )
        end_documents(database, 1)

    assert len(receiver.received) == 1


def test_where_the_setting_is_taken_back_nothing_is_sent(database: Database) -> None:
    rules = replace(RULES, allow_loopback=False)
    with receiving() as receiver, delivering(database, rules=rules):
        endpoint_id, _ = add_endpoint(database, receiver.url)
        end_documents(database, 1)
        wait_until(
            lambda: endpoint_of(database, endpoint_id).last_error == "forbidden_address",
            what="the refusal",
        )

    assert receiver.received == []


def test_the_program_sends_says_that_it_lives_and_comes_back_after_a_kill(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_HOME": str(tmp_path),
        "PAGEFLEET_WEBHOOK_ALLOW_LOOPBACK": "true",
    }

    def start() -> "subprocess.Popen[bytes]":
        with (tmp_path / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "cli", "webhooks"],
                env=environment,
                stdout=log,
                stderr=log,
            )

    is_over = threading.Event()

    def hang_first(_: ReceivedWebhook) -> int:
        if len(receiver.received) == 1:
            is_over.wait(120)
        return 204

    with receiving(hang_first) as receiver:
        endpoint_id, secret = add_endpoint(database, receiver.url)
        first = start()
        try:
            end_documents(database, 1)
            wait_until(lambda: len(receiver.received) == 1, what="the first try")
        finally:
            first.kill()
            first.wait()
        let_leases_end(database)
        second = start()
        try:
            wait_until(lambda: states(database, endpoint_id) == ["delivered"], what="the second")
            heartbeat = tmp_path / "heartbeats" / "webhooks.json"
            assert heartbeat.exists()
            second.send_signal(signal.SIGTERM)
            code = second.wait(60)
        finally:
            second.kill()
            second.wait()
            is_over.set()

    log = (tmp_path / "log").read_text()
    assert (code, heartbeat.exists()) == (0, False)
    assert len({got.message_id for got in receiver.received}) == 1
    assert "webhook delivered" in log
    assert secret not in log
    assert receiver.url not in log


def let_leases_end(database: Database) -> None:
    with database.transaction() as session:
        session.execute(
            text("UPDATE webhook_deliveries SET dispatch_after = now(), lease_expires_at = now()")
        )
