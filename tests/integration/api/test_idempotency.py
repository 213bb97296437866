import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import httpx
import pytest

from storage import keys
from tests.support.api_server import RunningApi, documents_in, keys_in

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 1_000


def submit(client: httpx.Client, content: bytes = PDF, **fields: Any) -> httpx.Response:
    key = fields.pop("key", "order-17")
    filename = fields.pop("filename", "ledger.pdf")
    return client.post(
        "/v1/documents",
        files={"file": (filename, content)},
        data=fields,
        headers={"Idempotency-Key": key},
    )


def test_the_same_request_again_is_answered_with_the_same_document(api: RunningApi) -> None:
    first = submit(api.client)

    again = submit(api.client)

    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    assert "Idempotent-Replayed" not in first.headers


def test_a_replay_leaves_no_second_file_row_or_message(api: RunningApi) -> None:
    document_id = UUID(submit(api.client).json()["id"])

    submit(api.client)

    assert keys_in(api.store) == [keys.source_key(document_id)]
    assert [row.id for row in documents_in(api.database)] == [document_id]
    assert api.dispatch.sent == [document_id]


@pytest.mark.parametrize(
    "other",
    [
        {"content": PDF + b"x"},
        {"options": '{"dpi": 300}'},
        {"priority": "bulk"},
        {"filename": "other.pdf"},
    ],
)
def test_another_request_under_the_same_key_is_refused(
    api: RunningApi, other: dict[str, Any]
) -> None:
    document_id = UUID(submit(api.client).json()["id"])

    response = submit(api.client, **other)

    assert (response.status_code, response.json()["code"]) == (422, "idempotency_mismatch")
    assert keys_in(api.store) == [keys.source_key(document_id)]


def test_another_key_makes_another_document(api: RunningApi) -> None:
    first = submit(api.client, key="order-17").json()

    second = submit(api.client, key="order-18").json()

    assert first["id"] != second["id"]


def test_tenants_do_not_share_keys(api: RunningApi, stranger: httpx.Client) -> None:
    first = submit(api.client)

    second = submit(stranger, PDF + b"x")

    assert second.status_code == 202
    assert first.json()["id"] != second.json()["id"]


def test_of_requests_that_race_under_one_key_one_makes_the_document(api: RunningApi) -> None:
    together = threading.Barrier(6)

    def race() -> httpx.Response:
        together.wait()
        return submit(api.client)

    with ThreadPoolExecutor(6) as pool:
        answers = [future.result() for future in [pool.submit(race) for _ in range(6)]]

    (document_id,) = {answer.json()["id"] for answer in answers}
    assert {answer.status_code for answer in answers} == {202}
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers].count(None) == 1
    assert keys_in(api.store) == [keys.source_key(UUID(document_id))]
    assert [row.id for row in documents_in(api.database)] == [UUID(document_id)]
    assert api.dispatch.sent == [UUID(document_id)]


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel"])
def test_a_key_that_is_none_is_refused(api: RunningApi, key: str) -> None:
    response = api.client.post(
        "/v1/documents",
        files={"file": ("a.pdf", PDF)},
        headers={b"Idempotency-Key": key.encode("latin-1")},
    )

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert keys_in(api.store) == []
