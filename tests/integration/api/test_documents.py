import hashlib
import json
from contextlib import nullcontext
from typing import Any
from uuid import UUID

import httpx
import pytest

from db import documents
from db.states import DocumentState
from storage import keys
from tests.support.api_server import RunningApi, Serve, documents_in, keys_in
from tests.support.rows import add_recognizing_document
from workers.ocr.options import OcrOptions

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 10_000


def submit(client: httpx.Client, content: bytes = PDF, **fields: Any) -> httpx.Response:
    filename = fields.pop("filename", "ledger.pdf")
    headers = fields.pop("headers", {})
    return client.post(
        "/v1/documents", files={"file": (filename, content)}, data=fields, headers=headers
    )


def test_a_document_is_accepted_with_its_bytes_its_row_and_its_message(api: RunningApi) -> None:
    response = submit(api.client)

    view = response.json()
    document_id = UUID(view["id"])
    (row,) = documents_in(api.database)
    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/documents/{document_id}"
    assert response.headers["Retry-After"] == "2"
    assert api.store.get(keys.source_key(document_id)) == PDF
    assert (row.id, row.state, row.tenant) == (document_id, DocumentState.QUEUED, "archive")
    assert row.sha256 == hashlib.sha256(PDF).hexdigest()
    assert row.size_bytes == len(PDF)
    assert row.source == {"kind": "upload", "key": keys.source_key(document_id)}
    assert row.dispatch_after is not None
    assert row.dispatch_after > row.created_at  # the message has the grace to arrive
    assert (api.dispatch.sent, api.dispatch.priorities) == ([document_id], ["interactive"])


def test_an_accepted_document_is_described(api: RunningApi) -> None:
    view = submit(api.client, options='{"dpi": 300}', priority="bulk").json()

    assert view["state"] == "queued"
    assert view["filename"] == "ledger.pdf"
    assert view["media_type"] == "application/pdf"
    assert view["priority"] == "bulk"
    assert view["options"] == OcrOptions(dpi=300).model_dump(mode="json")
    assert view["progress"] == {"pages": None, "ok": 0, "failed": 0, "skipped": 0, "left": None}
    assert view["error"] is None
    assert view["timings"]["created_at"] is not None
    assert api.client.get(view["links"]["self"]).json() == view


def test_a_document_in_bulk_is_left_to_the_sweep_at_once(api: RunningApi) -> None:
    submit(api.client, priority="bulk")

    (row,) = documents_in(api.database)
    assert api.dispatch.sent == []
    assert (row.dispatch_after, row.deliveries) == (row.created_at, 0)


def test_a_document_without_room_in_the_queue_is_left_to_the_sweep_at_once(serve: Serve) -> None:
    with serve(place_for_split=lambda: nullcontext(enter_result=False)) as api:
        response = submit(api.client)

    (row,) = documents_in(api.database)
    assert response.status_code == 202
    assert api.dispatch.sent == []
    assert (row.dispatch_after, row.deliveries) == (row.created_at, 0)


def test_the_type_is_told_from_the_content(api: RunningApi) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(2_000)

    view = submit(api.client, png, filename="holiday.pdf").json()

    assert view["media_type"] == "image/png"


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"PK\x03\x04" + bytes(5_000), 415, "unsupported_media_type"),
        (b"", 422, "empty"),
        (b"%PDF-1.7" + bytes(10 * 2**20), 413, "file_too_large"),
        (b"%PDF-1.7" + bytes(15 * 2**20), 413, "file_too_large"),
    ],
    ids=["another format", "no bytes", "over the limit", "far over the limit"],
)
def test_a_file_at_fault_is_refused_and_leaves_nothing(
    api: RunningApi, content: bytes, status: int, code: str
) -> None:
    response = submit(api.client, content)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert keys_in(api.store) == []
    assert documents_in(api.database) == []
    assert api.dispatch.sent == []


@pytest.mark.parametrize(
    "fields",
    [
        {"options": '{"dpi": 1}'},
        {"options": "{"},
        {"priority": "now"},
        {"batch_id": "x"},
        {"color": "red"},
    ],
)
def test_a_form_at_fault_is_refused_and_leaves_nothing(
    api: RunningApi, fields: dict[str, Any]
) -> None:
    response = submit(api.client, **fields)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert response.json()["errors"]
    assert keys_in(api.store) == []
    assert documents_in(api.database) == []


def test_a_body_that_is_cut_off_is_refused_and_leaves_nothing(api: RunningApi) -> None:
    content = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + PDF

    response = api.client.post(
        "/v1/documents",
        content=content,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )

    assert (response.status_code, response.json()["code"]) == (400, "malformed_body")
    assert keys_in(api.store) == []


def test_a_body_that_is_no_form_is_refused(api: RunningApi) -> None:
    response = api.client.post(
        "/v1/documents", content=PDF, headers={"Content-Type": "application/pdf"}
    )

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../../etc/passwd", "passwd"),
        ("a\r\nX-Evil: 1.pdf", "a%0D%0AX-Evil_ 1.pdf"),
        ("契約書 (最終).pdf", "契約書 (最終).pdf"),
        ("\u202efdp.exe", "_fdp.exe"),
        ("<img src=x onerror=alert(1)>.pdf", "_img src=x onerror=alert(1)_.pdf"),
        ("'; DROP TABLE documents; --.pdf", "'; DROP TABLE documents; --.pdf"),
    ],
)
def test_a_hostile_file_name_is_kept_as_harmless_data(
    api: RunningApi, sent: str, kept: str
) -> None:
    response = submit(api.client, filename=sent)

    assert response.status_code == 202
    assert response.json()["filename"] == kept
    assert keys_in(api.store) == [keys.source_key(UUID(response.json()["id"]))]


def test_a_raw_control_character_in_a_file_name_is_replaced(api: RunningApi) -> None:
    content = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a\x01\xff.pdf"\r\n\r\n'
        + PDF
        + b"\r\n--b--\r\n"
    )

    response = api.client.post(
        "/v1/documents",
        content=content,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )

    assert response.json()["filename"] == "a_\ufffd.pdf"


def test_an_unchanged_document_is_not_sent_again(api: RunningApi) -> None:
    address = submit(api.client).headers["Location"]
    etag = api.client.get(address).headers["ETag"]

    response = api.client.get(address, headers={"If-None-Match": etag})

    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["ETag"] == etag


def test_a_document_that_moved_on_is_sent_again(api: RunningApi) -> None:
    address = submit(api.client).headers["Location"]
    etag = api.client.get(address).headers["ETag"]
    with api.database.transaction() as session:
        documents.move(
            session,
            UUID(address.rpartition("/")[2]),
            source=DocumentState.QUEUED,
            target=DocumentState.CANCELLED,
        )

    response = api.client.get(address, headers={"If-None-Match": etag})

    assert (response.status_code, response.json()["state"]) == (200, "cancelled")


def test_a_document_that_is_worked_on_counts_its_pages(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id, _ = add_recognizing_document(session, page_count=5)

    view = api.client.get(f"/v1/documents/{document_id}").json()

    assert view["progress"] == {"pages": 5, "ok": 0, "failed": 0, "skipped": 0, "left": 5}


def test_pages_are_listed_in_order_by_their_number(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id, _ = add_recognizing_document(session, page_count=5)
    address = f"/v1/documents/{document_id}/pages"

    first = api.client.get(address, params={"limit": 3}).json()
    rest = api.client.get(address, params={"limit": 3, "cursor": first["next_cursor"]}).json()

    numbers = [page["page_number"] for page in first["pages"] + rest["pages"]]
    assert numbers == [1, 2, 3, 4, 5]
    assert rest["next_cursor"] is None
    assert {page["state"] for page in first["pages"]} == {"queued"}


def test_documents_are_listed_newest_first_and_stable_under_inserts(api: RunningApi) -> None:
    ids = [submit(api.client).json()["id"] for _ in range(5)]

    first = api.client.get("/v1/documents", params={"limit": 2}).json()
    submit(api.client)
    second = api.client.get(
        "/v1/documents", params={"limit": 2, "cursor": first["next_cursor"]}
    ).json()
    third = api.client.get(
        "/v1/documents", params={"limit": 2, "cursor": second["next_cursor"]}
    ).json()

    listed = [view["id"] for page in (first, second, third) for view in page["documents"]]
    assert listed == ids[::-1]
    assert third["next_cursor"] is None


def test_a_list_is_filtered_by_state(api: RunningApi) -> None:
    document_id = submit(api.client).json()["id"]

    queued = api.client.get("/v1/documents", params={"state": "queued"}).json()
    failed = api.client.get("/v1/documents", params={"state": "failed"}).json()

    assert [view["id"] for view in queued["documents"]] == [document_id]
    assert failed == {"documents": [], "next_cursor": None}


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"cursor": "!"}, "cursor"),
        ({"state": "lost"}, "state"),
        ({"batch_id": "1"}, "batch_id"),
    ],
)
def test_a_wrong_filter_is_named(api: RunningApi, parameters: dict[str, Any], field: str) -> None:
    response = api.client.get("/v1/documents", params=parameters)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert [each["field"] for each in response.json()["errors"]] == [field]


def test_the_documents_of_another_tenant_are_not_found(
    api: RunningApi, stranger: httpx.Client
) -> None:
    address = submit(api.client).headers["Location"]

    answers = [
        stranger.get(address),
        stranger.get(f"{address}/pages"),
        stranger.get(f"{address}/result"),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert stranger.get("/v1/documents").json()["documents"] == []


def test_an_id_that_is_none_is_refused(api: RunningApi) -> None:
    response = api.client.get("/v1/documents/..%2f..%2fetc")

    assert response.status_code in {404, 422}
    assert response.headers["Content-Type"] == "application/problem+json"


def test_options_may_come_after_the_file(api: RunningApi) -> None:
    content = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.7\r\n'
        b'--b\r\nContent-Disposition: form-data; name="options"\r\n\r\n'
        + json.dumps({"dpi": 150}).encode()
        + b"\r\n--b--\r\n"
    )

    response = api.client.post(
        "/v1/documents",
        content=content,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )

    assert response.json()["options"]["dpi"] == 150
