"""Cancel, retry and delete as a client sees them."""

from uuid import UUID

import httpx
import pytest

from db import chunks
from db.models import Document
from db.states import DocumentState
from storage import keys
from tests.support.api_server import RunningApi, Serve
from tests.support.rows import add_document, add_recognizing_document

ACTIONS = [("POST", "/cancel"), ("POST", "/retry"), ("DELETE", "")]


def code_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def add_final(api: RunningApi, state: DocumentState) -> UUID:
    with api.database.transaction() as session:
        document_id = add_document(session)
        document = session.get_one(Document, document_id)
        document.state, document.dispatch_after = state, None
    return document_id


@pytest.mark.parametrize(("method", "action"), ACTIONS)
def test_another_tenants_document_is_not_found(
    api: RunningApi, stranger: httpx.Client, method: str, action: str
) -> None:
    with api.database.transaction() as session:
        document_id = add_document(session)

    answer = stranger.request(method, f"/v1/documents/{document_id}{action}")

    assert code_of(answer) == (404, "not_found")
    assert api.client.get(f"/v1/documents/{document_id}").json()["state"] == "queued"


def test_a_document_is_cancelled_and_again_with_the_same_answer(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id, planned = add_recognizing_document(session)
        chunks.give_up(session, planned[1].id, code="worker_lost", detail="x")

    answers = [api.client.post(f"/v1/documents/{document_id}/cancel") for _ in range(2)]

    first, again = (answer.json() for answer in answers)
    assert [answer.status_code for answer in answers] == [200, 200]
    assert first == again
    assert (first["state"], first["error"]["code"]) == ("cancelled", "cancelled")
    assert first["progress"] == {"pages": 3, "ok": 0, "failed": 1, "skipped": 0, "left": 2}


@pytest.mark.parametrize(
    "state", [DocumentState.SUCCEEDED, DocumentState.PARTLY_SUCCEEDED, DocumentState.FAILED]
)
def test_a_document_that_ended_otherwise_is_not_cancelled(
    api: RunningApi, state: DocumentState
) -> None:
    document_id = add_final(api, state)

    answer = api.client.post(f"/v1/documents/{document_id}/cancel")

    assert code_of(answer) == (409, "already_final")
    assert api.client.get(f"/v1/documents/{document_id}").json()["state"] == state


def test_a_retry_is_accepted_once_and_starts_a_new_generation(api: RunningApi) -> None:
    document_id = add_final(api, DocumentState.FAILED)

    first, again = (api.client.post(f"/v1/documents/{document_id}/retry") for _ in range(2))

    assert (first.status_code, first.json()["state"]) == (202, "queued")
    assert first.headers["Location"] == f"/v1/documents/{document_id}"
    assert int(first.headers["Retry-After"]) > 0
    assert code_of(again) == (409, "not_ready")
    with api.database.transaction() as session:
        assert session.get_one(Document, document_id).generation == 2


def test_a_document_that_was_read_whole_has_nothing_to_retry(api: RunningApi) -> None:
    document_id = add_final(api, DocumentState.SUCCEEDED)

    answer = api.client.post(f"/v1/documents/{document_id}/retry")

    assert code_of(answer) == (409, "nothing_to_retry")


def test_a_retry_is_refused_while_the_system_is_full(serve: Serve) -> None:
    with serve(settings={"api_max_open_pages_interactive": 1}) as api:
        document_id = add_final(api, DocumentState.FAILED)
        with api.database.transaction() as session:
            add_document(session)

        answer = api.client.post(f"/v1/documents/{document_id}/retry")

        assert code_of(answer) == (503, "system_full")
        assert api.client.get(f"/v1/documents/{document_id}").json()["state"] == "failed"


def test_the_earlier_result_can_be_fetched_while_a_document_is_retried(api: RunningApi) -> None:
    document_id = add_final(api, DocumentState.PARTLY_SUCCEEDED)
    with api.database.transaction() as session:
        session.get_one(Document, document_id).result_key = keys.result_key(document_id, 1)
    for key, body in (
        (keys.result_key(document_id, 1), b"{}"),
        (keys.result_text_key(document_id, 1), b"old"),
    ):
        api.store.put(key, body, media_type="text/plain")
    links = api.client.post(f"/v1/documents/{document_id}/retry").json()["links"]

    answers = [api.client.get(links[name]) for name in ("result", "text")]

    assert [answer.content for answer in answers] == [b"{}", b"old"]


def test_a_cancelled_document_has_no_result(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id = add_document(session)
    api.client.post(f"/v1/documents/{document_id}/cancel")

    answer = api.client.get(f"/v1/documents/{document_id}/result")

    assert code_of(answer) == (409, "cancelled")


@pytest.mark.parametrize("state", [DocumentState.RECOGNIZING, DocumentState.SUCCEEDED])
def test_a_deleted_document_is_gone_for_everybody_at_once(
    api: RunningApi, state: DocumentState
) -> None:
    document_id = add_final(api, state)
    address = f"/v1/documents/{document_id}"

    deleted = api.client.delete(address)

    assert (deleted.status_code, deleted.content) == (204, b"")
    for method, path in [
        ("GET", ""),
        ("GET", "/pages"),
        ("GET", "/result"),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("POST", "/retry"),
    ]:
        assert code_of(api.client.request(method, address + path)) == (404, "not_found")
    for query in ("", "?state=deleting"):
        assert api.client.get(f"/v1/documents{query}").json()["documents"] == []


def test_a_deleted_document_does_not_count_in_its_batch(api: RunningApi) -> None:
    batch = api.client.post("/v1/batches", json={"name": "ledgers"}).json()
    with api.database.transaction() as session:
        document_id = add_document(session, batch_id=UUID(batch["id"]))

    api.client.delete(f"/v1/documents/{document_id}")

    view = api.client.get(batch["links"]["self"]).json()
    assert (view["state"], view["documents"]["total"]) == ("open", 0)


def test_an_idempotency_key_is_free_again_once_its_document_is_deleted(api: RunningApi) -> None:
    def send() -> httpx.Response:
        return api.client.post(
            "/v1/documents",
            files={"file": ("a.pdf", b"%PDF-1.7 x" + bytes(2_000))},
            headers={"Idempotency-Key": "k"},
        )

    first = send().json()["id"]
    api.client.delete(f"/v1/documents/{first}")

    again = send()

    assert "Idempotent-Replayed" not in again.headers
    assert again.json()["id"] != first
