from uuid import UUID, uuid4

import httpx
import pytest

from db import documents
from db.models import Batch
from db.states import BatchState, DocumentState
from tests.support.api_server import RunningApi, keys_in

PDF = b"%PDF-1.7\n" + bytes(2_000)


def create(client: httpx.Client, **fields: object) -> httpx.Response:
    return client.post("/v1/batches", json={"name": "ledgers 1911", **fields})


def submit(client: httpx.Client, batch_id: str, **fields: str) -> httpx.Response:
    return client.post(
        "/v1/documents", files={"file": ("a.pdf", PDF)}, data={"batch_id": batch_id, **fields}
    )


def cancel(api: RunningApi, document_id: str) -> None:
    with api.database.transaction() as session:
        documents.move(
            session,
            UUID(document_id),
            source=DocumentState.QUEUED,
            target=DocumentState.CANCELLED,
        )


def test_a_new_batch_is_open_and_empty(api: RunningApi) -> None:
    response = create(api.client)

    view = response.json()
    assert response.status_code == 201
    assert response.headers["Location"] == f"/v1/batches/{view['id']}"
    assert (view["name"], view["state"], view["documents"]["total"]) == ("ledgers 1911", "open", 0)
    assert api.client.get(view["links"]["self"]).json() == view


def test_a_batch_runs_while_a_document_is_open(api: RunningApi) -> None:
    batch = create(api.client).json()
    first = submit(api.client, batch["id"]).json()
    submit(api.client, batch["id"])
    cancel(api, first["id"])

    view = api.client.get(batch["links"]["self"]).json()

    assert view["state"] == "running"
    counts = view["documents"]
    assert (counts["total"], counts["queued"], counts["cancelled"]) == (2, 1, 1)


def test_a_batch_is_finished_when_all_its_documents_are_final(api: RunningApi) -> None:
    batch = create(api.client).json()
    cancel(api, submit(api.client, batch["id"]).json()["id"])

    assert api.client.get(batch["links"]["self"]).json()["state"] == "finished"


def test_the_documents_of_a_batch_are_listed(api: RunningApi) -> None:
    batch = create(api.client).json()
    inside = submit(api.client, batch["id"]).json()
    api.client.post("/v1/documents", files={"file": ("a.pdf", PDF)})

    by_batch = api.client.get(batch["links"]["documents"]).json()
    by_filter = api.client.get("/v1/documents", params={"batch_id": batch["id"]}).json()

    assert [view["id"] for view in by_batch["documents"]] == [inside["id"]]
    assert by_filter == by_batch
    assert inside["links"]["batch"] == batch["links"]["self"]


def test_the_options_of_a_batch_apply_to_its_documents(api: RunningApi) -> None:
    batch = create(api.client, options={"dpi": 300}).json()

    inherited = submit(api.client, batch["id"]).json()
    own = submit(api.client, batch["id"], options='{"dpi": 100}').json()

    assert (inherited["options"]["dpi"], own["options"]["dpi"]) == (300, 100)


def test_documents_of_a_batch_do_not_make_a_person_wait(api: RunningApi) -> None:
    batch = create(api.client).json()

    assert submit(api.client, batch["id"]).json()["priority"] == "bulk"
    assert submit(api.client, batch["id"], priority="interactive").json()["priority"] == (
        "interactive"
    )


def test_a_document_for_an_unknown_batch_is_refused_and_leaves_nothing(api: RunningApi) -> None:
    response = submit(api.client, str(uuid4()))

    assert (response.status_code, response.json()["code"]) == (404, "unknown_batch")
    assert keys_in(api.store) == []


def test_a_document_for_a_cancelled_batch_is_refused(api: RunningApi) -> None:
    batch = create(api.client).json()
    with api.database.transaction() as session:
        session.get_one(Batch, UUID(batch["id"])).state = BatchState.CANCELLED

    response = submit(api.client, batch["id"])

    assert (response.status_code, response.json()["code"]) == (409, "batch_closed")
    assert keys_in(api.store) == []


def test_the_batch_of_another_tenant_is_unknown(api: RunningApi, stranger: httpx.Client) -> None:
    batch = create(api.client).json()

    assert stranger.get(batch["links"]["self"]).status_code == 404
    assert stranger.get(batch["links"]["documents"]).status_code == 404
    assert submit(stranger, batch["id"]).json()["code"] == "unknown_batch"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"name": ""}', 422),
        ('{"name": "a\\u0000b"}', 422),
        ('{"name": "\\ud800"}', 422),
        ('{"name": "a", "options": {"dpi": 1}}', 422),
        ('{"name": "a", "options": {"text_order": "rows"}}', 422),
        ('{"name": "a", "color": 1}', 422),
        ("{}", 422),
        ("[]", 422),
        ("{", 400),
        ("[" * 100_000, 400),
        ('{"name": "' + "x" * 2**20 + '"}', 413),
    ],
    ids=[
        "empty",
        "nul",
        "surrogate",
        "option",
        "order",
        "unknown",
        "missing",
        "list",
        "cut",
        "deep",
        "big",
    ],
)
def test_a_batch_at_fault_is_refused(api: RunningApi, body: str, status: int) -> None:
    response = api.client.post(
        "/v1/batches", content=body, headers={"Content-Type": "application/json"}
    )

    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"


def test_a_batch_is_cancelled_and_again_with_the_same_answer(api: RunningApi) -> None:
    batch = create(api.client).json()
    document = submit(api.client, batch["id"]).json()

    first, again = (api.client.post(f"/v1/batches/{batch['id']}/cancel") for _ in range(2))

    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    assert first.json()["documents"]["cancelled"] == 1
    assert again.json() == first.json()
    assert api.client.get(document["links"]["self"]).json()["state"] == "cancelled"
    refused = submit(api.client, batch["id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "batch_closed")


def test_the_batch_of_another_tenant_is_not_cancelled(
    api: RunningApi, stranger: httpx.Client
) -> None:
    batch = create(api.client).json()

    answer = stranger.post(f"/v1/batches/{batch['id']}/cancel")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert api.client.get(batch["links"]["self"]).json()["state"] == "open"
