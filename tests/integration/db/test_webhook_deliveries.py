"""Deliveries are made with the end that they tell of, and tried until they are taken."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from db import documents, events, retrying, webhook_deliveries
from db.engine import Database, Session
from db.errors import RowNotFoundError
from db.states import DeliveryState
from db.webhook_deliveries import DueDelivery
from db.webhook_models import WebhookEndpoint
from tests.support.rows import TENANT, claim_split
from tests.support.webhook_rows import (
    add_endpoint,
    deliveries,
    end_document,
    fail,
    let_time_pass,
    take,
)


def test_the_end_of_a_document_is_told_to_those_who_asked_for_it(database: Database) -> None:
    with database.transaction() as session:
        all_ends = add_endpoint(session).id
        cancelled = add_endpoint(session, event_types=["document.cancelled"]).id
        failed = add_endpoint(session, event_types=["document.failed"]).id
        other_tenant = add_endpoint(session, tenant="other").id
        document_id = end_document(session)

    with database.transaction() as session:
        (first,), (second,) = (deliveries(session, each) for each in (all_ends, cancelled))
        assert [list(deliveries(session, each)) for each in (failed, other_tenant)] == [[], []]
        told = events.list_of_many(session, {document_id: 1}, limit=1)[document_id]
    assert first.message_id == second.message_id == f"msg_{document_id.hex}_2"
    assert first.event_at == told[0].at
    assert (first.type, first.state, first.id.version) == ("document.cancelled", "waiting", 7)
    assert first.payload == {
        "document_id": str(document_id),
        "batch_id": None,
        "state": "cancelled",
        "generation": 1,
        "error_code": "cancelled",
        "pages": None,
        "pages_ok": 0,
        "pages_failed": 0,
        "pages_skipped": 0,
    }


def test_every_end_is_told_and_nothing_else(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        document_id = end_document(session)
        retrying.retry(session, document_id, tenant=TENANT)
        claim = claim_split(session, document_id)
        documents.fail(session, claim, code="damaged", detail="x")

        found = deliveries(session, endpoint_id)
    assert [each.type for each in found] == ["document.failed", "document.cancelled"]
    assert [each.payload["generation"] for each in found] == [2, 1]


def test_an_end_that_is_rolled_back_is_not_told(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
    with pytest.raises(RowNotFoundError), database.transaction() as session:
        end_and_fail(session)

    with database.transaction() as session:
        assert deliveries(session, endpoint_id) == []


def end_and_fail(session: Session) -> None:
    end_document(session)
    raise RowNotFoundError


def test_two_who_take_at_once_take_different_ones(database: Database) -> None:
    with database.transaction() as session:
        add_endpoint(session)
        for _ in range(6):
            end_document(session)

    with database.transaction() as session, database.transaction() as other:
        first = take(session, room=2)
        second = take(other)

    assert (len(first), len(second)) == (2, 4)
    assert {due.delivery_id for due in first}.isdisjoint(due.delivery_id for due in second)


def test_an_endpoint_gets_so_many_at_a_time_and_the_others_theirs(database: Database) -> None:
    with database.transaction() as session:
        many = add_endpoint(session, tenant="many").id
        few = add_endpoint(session, tenant="few").id
        for _ in range(8):
            end_document(session, tenant="many")
        end_document(session, tenant="few")

    with database.transaction() as session:
        first = take(session)
    with database.transaction() as session:
        while_held = take(session)
        let_time_pass(session, timedelta(seconds=61))
        later = take(session)

    assert sorted(str(due.endpoint_id) for due in first) == sorted([*[str(many)] * 4, str(few)])
    assert while_held == []
    assert len(later) == 5  # whoever held them is dead, and nobody knows what came of it
    assert {due.attempt for due in later} <= {1, 2}


def test_a_tenant_gets_so_many_at_a_time_whatever_its_endpoints(database: Database) -> None:
    with database.transaction() as session:
        many = [add_endpoint(session, tenant="many").id for _ in range(3)]
        few = add_endpoint(session, tenant="few").id
        for _ in range(4):
            end_document(session, tenant="many")
        end_document(session, tenant="few")

        first = take(session, per_tenant=6)
        while_held = take(session, per_tenant=6)
        webhook_deliveries.note_delivered(session, taken_of(first, many)[0], status=200)
        later = take(session, per_tenant=6)

    assert (len(taken_of(first, many)), len(taken_of(first, [few]))) == (6, 1)
    assert while_held == []
    assert len(later) == 1


def taken_of(taken: Sequence[DueDelivery], endpoint_ids: Sequence[UUID]) -> list[DueDelivery]:
    return [due for due in taken if due.endpoint_id in endpoint_ids]


def test_what_was_taken_is_done(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        (due,) = take(session)
        webhook_deliveries.note_delivered(session, due, status=204)

        (row,) = deliveries(session, endpoint_id)
        assert (row.state, row.last_status, row.dispatch_after) == ("delivered", 204, None)
        assert row.finished_at is not None
        let_time_pass(session, timedelta(days=1))
        assert take(session) == []


def test_a_late_sender_changes_nothing(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        (late,) = take(session)
        let_time_pass(session, timedelta(minutes=5))
        (due,) = take(session)
        webhook_deliveries.note_delivered(session, due, status=200)
        fail(session, late)

        (row,) = deliveries(session, endpoint_id)
    assert (row.state, row.last_status) == ("delivered", 200)
    assert (late.attempt, due.attempt, late.message_id) == (1, 2, due.message_id)


def test_a_failure_is_tried_again_later_and_later(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        pauses_s = []
        for _ in range(9):
            (due,) = take(session)
            fail(session, due)
            (row,) = deliveries(session, endpoint_id)
            assert row.dispatch_after is not None
            now = session.execute(text("SELECT now()")).scalar_one()
            pause = row.dispatch_after - now
            pauses_s.append(pause.total_seconds())
            let_time_pass(session, max(pause, timedelta(minutes=7)))

    assert 3.7 < pauses_s[0] < 6.3
    assert all(now_s > 0.6 * 7 * 60 * number for number, now_s in enumerate(pauses_s))
    assert pauses_s[-1] <= 1.25 * 7_200


def test_an_endpoint_that_fails_rests_and_is_itself_again_after_a_success(
    database: Database,
) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        for _ in range(3):
            end_document(session)
        first, second = take(session, room=2)
        fail(session, first)
        while_it_rests = take(session)
        let_time_pass(session, timedelta(seconds=2))
        after = take(session, room=1)
        webhook_deliveries.note_delivered(session, second, status=200)

        endpoint = session.get_one(WebhookEndpoint, endpoint_id, populate_existing=True)
    assert while_it_rests == []
    assert len(after) == 1
    assert (endpoint.failures, endpoint.failing_since, endpoint.last_error) == (0, None, None)


def test_after_a_day_a_delivery_has_failed(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        (first,) = take(session)
        fail(session, first)
        let_time_pass(session, timedelta(hours=24, seconds=1))
        (due,) = take(session)
        fail(session, due)

        (row,) = deliveries(session, endpoint_id)
    assert (row.state, row.last_error, row.dispatch_after) == ("failed", "status_500", None)


def fail_one(session: Session) -> None:
    """Let one message be tried in vain."""
    due, *_ = take(session, room=1)
    fail(session, due)


def test_what_an_endpoint_that_fails_was_never_tried_with_has_failed_after_a_day(
    database: Database,
) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        for _ in range(3):
            end_document(session)
        fail_one(session)
        let_time_pass(session, timedelta(hours=24, minutes=30))
        fail_one(session)
        too_early = webhook_deliveries.end_hopeless(session, limit=10)
        let_time_pass(session, timedelta(minutes=40))
        ended = webhook_deliveries.end_hopeless(session, limit=10)

        rows = deliveries(session, endpoint_id)
    assert (too_early, ended) == (0, 2)
    assert [row.state for row in rows] == ["failed"] * 3
    assert sorted(row.last_error or "" for row in rows) == ["expired", "status_500", "status_500"]


def test_what_was_never_tried_waits_for_an_endpoint_that_does_not_fail(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        for _ in range(3):
            end_document(session)
        (taken,) = take(session, room=1)
        webhook_deliveries.note_delivered(session, taken, status=200)
        let_time_pass(session, timedelta(days=3))
        (failed,) = take(session, room=1)
        fail(session, failed)
        ended = webhook_deliveries.end_hopeless(session, limit=10)

        rows = deliveries(session, endpoint_id)
    # Not the one either that failed just now: its day has begun with its first try.
    assert ended == 0
    assert sorted(row.state for row in rows) == ["delivered", "waiting", "waiting"]


def test_what_waited_while_nobody_sent_is_tried_again_before_it_is_given_up(
    database: Database,
) -> None:
    with database.transaction() as session:
        add_endpoint(session)
        for _ in range(2):
            end_document(session)
        fail_one(session)
        let_time_pass(session, timedelta(days=2))

        while_nobody_knows = webhook_deliveries.end_hopeless(session, limit=10)
        fail_one(session)
        once_it_is_known = webhook_deliveries.end_hopeless(session, limit=10)

    assert (while_nobody_knows, once_it_is_known) == (0, 1)


def test_spare_senders_are_for_endpoints_that_do_not_fail(database: Database) -> None:
    with database.transaction() as session:
        failing, healthy = add_endpoint(session).id, add_endpoint(session).id
        for _ in range(6):
            end_document(session)
        (due,) = taken_of(take(session, per_endpoint=1), [failing])
        fail(session, due)
        let_time_pass(session, timedelta(seconds=10))

        spare = webhook_deliveries.take(
            session, room=100, per_endpoint=5, per_tenant=100, lease_s=60, only_healthy=True
        )

    assert len(spare) == len(taken_of(spare, [healthy])) == 4


def test_a_replay_begins_anew_under_the_same_id(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        (first,) = take(session)
        webhook_deliveries.note_delivered(session, first, status=200)
        replayed = webhook_deliveries.replay(session, endpoint_id, first.delivery_id)
        assert replayed.state == DeliveryState.WAITING
        (again,) = take(session)

        with pytest.raises(RowNotFoundError):
            webhook_deliveries.replay(session, add_endpoint(session).id, first.delivery_id)
    assert (again.message_id, again.attempt) == (first.message_id, 2)


def test_old_deliveries_are_removed_unless_they_wait(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        for _ in range(2):
            end_document(session)
        (due,) = take(session, room=1)
        webhook_deliveries.note_delivered(session, due, status=200)
    with database.transaction() as session:
        too_early = webhook_deliveries.clear(session, older_than_s=3_600, limit=10)
        removed = webhook_deliveries.clear(session, older_than_s=-60, limit=10)

        (row,) = deliveries(session, endpoint_id)
    assert (too_early, removed, row.state) == (0, 1, "waiting")
