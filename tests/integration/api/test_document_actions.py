"""Cancel, retry and delete as a client sees them."""

from uuid import UUID

import httpx
import pytest

from db import chunks
from db.models import Document
from db.states import DocumentState
from tests.support.api_server import RunningApi
from tests.support.rows import add_document, add_recognizing_document

ACTIONS = [("POST", "/cancel")]


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


def test_a_cancelled_document_has_no_result(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id = add_document(session)
    api.client.post(f"/v1/documents/{document_id}/cancel")

    answer = api.client.get(f"/v1/documents/{document_id}/result")

    assert code_of(answer) == (409, "cancelled")
