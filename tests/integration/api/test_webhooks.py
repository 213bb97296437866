"""Webhooks as a tenant manages them; the messages themselves are in integration/workers."""

import json
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import text

from db import cancelling, webhook_deliveries
from db.webhook_deliveries import Failure
from db.webhook_models import WebhookEndpoint
from db.webhooks import EVENT_TYPES
from tests.support.api_server import RunningApi, Serve
from tests.support.rows import TENANT, add_document

URL = "https://hooks.example.com/in"
MANY_DELIVERIES = text("""
    INSERT INTO webhook_deliveries
      (id, endpoint_id, message_id, type, payload, event_at, retry_until, dispatch_after)
    SELECT gen_random_uuid(), endpoint_id, message_id || number, type, payload, event_at,
      retry_until, dispatch_after
    FROM webhook_deliveries, generate_series(1, :more) AS number WHERE endpoint_id = :endpoint_id
""")
COUNT_REMOVALS = """
    CREATE TABLE removals (transaction bigint, rows bigint);
    CREATE FUNCTION count_removals() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO removals SELECT txid_current(), count(*) FROM removed;
      RETURN NULL;
    END $$;
    CREATE TRIGGER count_removals AFTER DELETE ON webhook_deliveries
      REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_removals();
"""


def code_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def create(api: RunningApi, **fields: object) -> UUID:
    answer = api.client.post("/v1/webhooks", json={"url": URL, **fields})
    assert answer.status_code == 201, answer.text
    return UUID(answer.json()["id"])


def end_documents(api: RunningApi, count: int) -> None:
    with api.database.transaction() as session:
        for _ in range(count):
            cancelling.cancel(session, add_document(session), tenant=TENANT)


def test_a_webhook_is_made_with_a_secret_that_is_shown_once(api: RunningApi) -> None:
    answer = api.client.post("/v1/webhooks", json={"url": URL, "description": "ledger"})
    made = answer.json()
    address = answer.headers["Location"]
    read = api.client.get(address).json()
    listed = api.client.get("/v1/webhooks").json()["webhooks"]

    assert answer.status_code == 201
    assert made.pop("secret").startswith("whsec_")
    assert listed == [read] == [made]
    assert (read["url"], read["description"], read["state"]) == (URL, "ledger", "active")
    assert read["event_types"] == list(EVENT_TYPES)


def test_another_tenants_webhooks_are_not_there(api: RunningApi, stranger: httpx.Client) -> None:
    webhook_id = create(api)
    end_documents(api, 1)
    address = f"/v1/webhooks/{webhook_id}"
    delivery = api.client.get(f"{address}/deliveries").json()["deliveries"][0]["id"]

    answers = [
        stranger.get(address),
        stranger.delete(address),
        stranger.post(f"{address}/rotate-secret"),
        stranger.post(f"{address}/enable"),
        stranger.get(f"{address}/deliveries"),
        stranger.post(f"{address}/deliveries/{delivery}/replay"),
    ]

    assert stranger.get("/v1/webhooks").json() == {"webhooks": []}
    assert {code_of(answer) for answer in answers} == {(404, "not_found")}
    assert api.client.get(address).status_code == 200


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "http://hooks.example.com"}, "url"),
        ({"url": "http://127.0.0.1:8080"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"url": "https://user:pw@hooks.example.com"}, "url"),
        ({"url": ""}, "url"),
        ({"event_types": []}, "event_types"),
        ({"event_types": ["document.exploded"]}, "event_types.0"),
        ({"description": "\x00"}, "description"),
        ({"description": "\ud800"}, "description"),
        ({"secret": "mine"}, "secret"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(
    api: RunningApi, fields: dict[str, object], field: str
) -> None:
    # By hand: the client refuses half a character by itself.
    body = json.dumps({"url": URL, **fields})
    answer = api.client.post(
        "/v1/webhooks", content=body, headers={"Content-Type": "application/json"}
    )

    assert code_of(answer) == (422, "invalid_request")
    assert [each["field"] for each in answer.json()["errors"]] == [field]


def test_this_machine_may_be_told_where_a_setting_allows_it(serve: Serve) -> None:
    with serve(settings={"webhook_allow_loopback": True}) as api:
        answer = api.client.post("/v1/webhooks", json={"url": "http://127.0.0.1:8080/in"})

    assert answer.status_code == 201


def test_an_eleventh_webhook_is_refused(api: RunningApi) -> None:
    for _ in range(10):
        webhook_id = create(api)
    refused = api.client.post("/v1/webhooks", json={"url": URL})
    api.client.delete(f"/v1/webhooks/{webhook_id}").raise_for_status()

    assert code_of(refused) == (409, "too_many_webhooks")
    assert create(api)


def test_a_webhook_is_removed_for_good(api: RunningApi) -> None:
    address = f"/v1/webhooks/{create(api)}"

    answers = [api.client.delete(address) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [204, 404]
    assert api.client.get(address).status_code == 404


def test_a_webhook_of_many_deliveries_is_removed_in_small_transactions(api: RunningApi) -> None:
    webhook_id, other = create(api), create(api)
    end_documents(api, 1)
    with api.database.transaction() as session:
        session.execute(MANY_DELIVERIES, {"endpoint_id": webhook_id, "more": 2_500})
        session.execute(text(COUNT_REMOVALS))

    answer = api.client.delete(f"/v1/webhooks/{webhook_id}")

    with api.database.transaction() as session:
        steps = session.execute(
            text("SELECT sum(rows) FROM removals GROUP BY transaction HAVING sum(rows) > 0")
        ).scalars()
        assert sorted(map(int, steps)) == [501, 1_000, 1_000]
    assert answer.status_code == 204
    assert len(api.client.get(f"/v1/webhooks/{other}/deliveries").json()["deliveries"]) == 1


def test_a_removal_that_is_broken_off_is_asked_for_again(api: RunningApi) -> None:
    webhook_id = create(api)
    end_documents(api, 1)
    address = f"/v1/webhooks/{webhook_id}"

    with api.database.transaction() as session:
        session.execute(text("ALTER TABLE webhook_deliveries RENAME TO away"))
    broken_off = api.client.delete(address)
    with api.database.transaction() as session:
        session.execute(text("ALTER TABLE away RENAME TO webhook_deliveries"))
    left = api.client.get(address).json()
    again = api.client.delete(address)

    assert broken_off.status_code == 500
    assert (left["state"], left["disabled_reason"]) == ("disabled", "removed")
    assert (again.status_code, api.client.get(address).status_code) == (204, 404)


def test_a_secret_is_rotated(api: RunningApi) -> None:
    first = api.client.post("/v1/webhooks", json={"url": URL}).json()

    second = api.client.post(f"/v1/webhooks/{first['id']}/rotate-secret").json()

    assert second["secret"].startswith("whsec_")
    assert second["secret"] != first["secret"]
    assert second["id"] == first["id"]


def test_deliveries_are_listed_page_by_page_newest_first(api: RunningApi) -> None:
    address = f"/v1/webhooks/{create(api)}/deliveries"
    end_documents(api, 5)

    first = api.client.get(address, params={"limit": 2}).json()
    end_documents(api, 1)
    second = api.client.get(address, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    third = api.client.get(address, params={"limit": 2, "cursor": second["next_cursor"]}).json()
    pages = [first, second, third]
    ids = [each["id"] for page in pages for each in page["deliveries"]]

    assert ids == sorted(set(ids), reverse=True)
    assert [len(page["deliveries"]) for page in pages] == [2, 2, 1]
    assert third["next_cursor"] is None
    assert first["deliveries"][0]["data"]["state"] == "cancelled"
    assert first["deliveries"][0]["next_attempt_at"]
    assert api.client.get(address, params={"state": "failed"}).json()["deliveries"] == []
    assert code_of(api.client.get(address, params={"cursor": "x"})) == (422, "invalid_request")


def test_a_delivery_is_replayed_under_the_same_id(api: RunningApi) -> None:
    address = f"/v1/webhooks/{create(api)}/deliveries"
    end_documents(api, 1)
    with api.database.transaction() as session:
        (due,) = webhook_deliveries.take(session, room=1, per_endpoint=1, per_tenant=1, lease_s=60)
        webhook_deliveries.note_delivered(session, due, status=200)
    before = api.client.get(address).json()["deliveries"][0]

    replayed = api.client.post(f"{address}/{due.delivery_id}/replay")

    assert (before["state"], before["last_status"]) == ("delivered", 200)
    assert (replayed.status_code, replayed.json()["state"]) == (202, "waiting")
    assert replayed.json()["message_id"] == before["message_id"] == due.message_id
    unknown = api.client.post(f"{address}/{uuid4()}/replay")
    assert code_of(unknown) == (404, "not_found")


def test_a_disabled_webhook_says_why_and_is_enabled_before_a_replay(api: RunningApi) -> None:
    webhook_id = create(api)
    end_documents(api, 1)
    with api.database.transaction() as session:
        (due,) = webhook_deliveries.take(session, room=1, per_endpoint=1, per_tenant=1, lease_s=60)
        gone = Failure("status_410", 410)
        webhook_deliveries.note_failed(session, due, gone, disable_after_s=60)
        assert session.get_one(WebhookEndpoint, webhook_id, populate_existing=True).disabled_at
    address = f"/v1/webhooks/{webhook_id}"

    disabled = api.client.get(address).json()
    replay = f"{address}/deliveries/{due.delivery_id}/replay"
    refused = api.client.post(replay)
    enabled = api.client.post(f"{address}/enable").json()

    assert (disabled["state"], disabled["disabled_reason"]) == ("disabled", "gone")
    assert disabled["last_error"] == "status_410"
    assert code_of(refused) == (409, "webhook_disabled")
    assert (enabled["state"], enabled["disabled_reason"]) == ("active", None)
    assert api.client.post(replay).status_code == 202
