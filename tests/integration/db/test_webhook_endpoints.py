"""Endpoints are disabled, removed and given new secrets, whatever is told of meanwhile."""

from datetime import timedelta

import pytest

from db import cancelling, documents, webhook_deliveries, webhooks
from db.documents import DocumentClaim
from db.engine import Database
from db.errors import RowNotFoundError, TooManyWebhooksError
from db.states import DocumentState
from db.webhook_deliveries import Failure
from db.webhook_models import WebhookEndpoint
from tests.support.backlog import add_batch
from tests.support.rows import TENANT, add_document
from tests.support.webhook_rows import (
    add_endpoint,
    deliveries,
    end_document,
    fail,
    let_time_pass,
    take,
)


def test_an_endpoint_that_is_gone_is_disabled_with_what_waits_for_it(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        for _ in range(2):
            end_document(session)
        (due,) = take(session, room=1)
        is_disabled = fail(session, due, Failure("status_410", 410))
        let_time_pass(session, timedelta(hours=1))
        taken = take(session)
        webhook_deliveries.end_hopeless(session, limit=10)
        end_document(session)  # told to nobody

        endpoint = session.get_one(WebhookEndpoint, endpoint_id, populate_existing=True)
        rows = deliveries(session, endpoint_id)
    assert is_disabled
    assert taken == []
    assert (endpoint.disabled_reason, endpoint.disabled_at is None) == ("gone", False)
    assert [(row.state, row.last_error) for row in rows] == [("failed", "endpoint_disabled")] * 2


def test_an_endpoint_that_fails_for_days_is_disabled_and_enabled_again(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        outcomes = []
        for _ in range(4):
            end_document(session)
            (due, *_) = take(session)
            outcomes.append(fail(session, due))
            let_time_pass(session, timedelta(days=2))
        endpoint = session.get_one(WebhookEndpoint, endpoint_id, populate_existing=True)
        assert endpoint.disabled_reason == "failing"
        enabled = webhooks.enable(session, endpoint_id, tenant=TENANT)
        end_document(session)

        assert take(session)
    assert outcomes == [False, False, False, True]
    assert (enabled.disabled_at, enabled.failures) == (None, 0)


def test_while_a_secret_is_rotated_both_sign_for_a_day(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        before = webhooks.get(session, endpoint_id, tenant=TENANT).secret
        rotated = webhooks.rotate_secret(session, endpoint_id, tenant=TENANT).secret
        for _ in range(2):
            end_document(session)
        (soon,) = take(session, room=1)
        let_time_pass(session, timedelta(hours=24, seconds=1))
        (later, *_) = take(session, room=1)

    assert soon.secrets == [rotated, before]
    assert later.secrets == [rotated]


def test_a_tenant_has_ten_endpoints_at_most(database: Database) -> None:
    with database.transaction() as session:
        for _ in range(webhooks.MOST_PER_TENANT):
            add_endpoint(session)
        with pytest.raises(TooManyWebhooksError):
            add_endpoint(session)

        add_endpoint(session, tenant="other")


def test_an_endpoint_goes_with_its_deliveries(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        webhooks.remove(session, endpoint_id, tenant=TENANT)

        assert deliveries(session, endpoint_id) == []
        with pytest.raises(RowNotFoundError):
            webhooks.get(session, endpoint_id, tenant=TENANT)


def test_a_result_is_published_while_an_endpoint_is_being_removed(database: Database) -> None:
    with database.transaction() as session:
        removed, kept = add_endpoint(session).id, add_endpoint(session).id
        document_id = add_document(session, state="assembling", attempt=1)

    with database.transaction() as removing:
        webhooks.remove(removing, removed, tenant=TENANT)
        with database.transaction() as session:
            documents.finish(
                session,
                DocumentClaim(document_id, generation=1, attempt=1),
                state=DocumentState.SUCCEEDED,
                result_key="1/result.json",
                result_size_bytes=1,
                values={},
            )

    with database.transaction() as session:
        assert documents.get(session, document_id).state == DocumentState.SUCCEEDED
        assert [each.type for each in deliveries(session, kept)] == ["document.succeeded"]
        assert deliveries(session, removed) == []


def test_a_batch_is_cancelled_while_an_endpoint_is_being_removed(database: Database) -> None:
    with database.transaction() as session:
        removed, kept = add_endpoint(session).id, add_endpoint(session).id
        batch_id = add_batch(session, tenant=TENANT)
        document_ids = [add_document(session, batch_id=batch_id) for _ in range(3)]
        cancelling.start_batch(session, batch_id, tenant=TENANT)

    with database.transaction() as removing:
        webhooks.remove(removing, removed, tenant=TENANT)
        with database.transaction() as session:
            assert cancelling.cancel_some(session, batch_id, after=None, limit=100) is None

    with database.transaction() as session:
        states = {documents.get(session, each).state for each in document_ids}
        assert states == {DocumentState.CANCELLED}
        assert len(deliveries(session, kept)) == 3


def test_whoever_notes_how_an_endpoint_fares_keeps_no_end_from_being_told(
    database: Database,
) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        (due,) = take(session)

    with database.transaction() as noting:
        fail(noting, due)
        with database.transaction() as session:
            end_document(session)

    with database.transaction() as session:
        assert len(deliveries(session, endpoint_id)) == 2


def test_an_endpoint_is_told_nothing_from_the_begin_of_its_removal(database: Database) -> None:
    with database.transaction() as session:
        endpoint_id = add_endpoint(session).id
        end_document(session)
        webhooks.begin_removal(session, endpoint_id, tenant=TENANT)
        end_document(session)

        assert take(session) == []
        assert len(deliveries(session, endpoint_id)) == 1
        endpoint = webhooks.get(session, endpoint_id, tenant=TENANT)
        assert (endpoint.disabled_reason, endpoint.disabled_at is None) == ("removed", False)


def test_deliveries_are_removed_so_many_at_a_time_and_of_one_endpoint(database: Database) -> None:
    with database.transaction() as session:
        removed, kept = add_endpoint(session).id, add_endpoint(session).id
        for _ in range(3):
            end_document(session)

        counts = [webhook_deliveries.remove_some(session, removed, limit=2) for _ in range(3)]

        assert counts == [2, 1, 0]
        assert len(deliveries(session, kept)) == 3
