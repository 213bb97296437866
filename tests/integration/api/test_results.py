import json
from typing import Any
from uuid import UUID

import httpx

from db.models import Document
from db.states import DocumentState
from storage import keys
from tests.support.api_server import RunningApi
from tests.support.rows import add_document

RESULT = json.dumps({"schema": "pagefleet/1", "full_text": "Grüße"}).encode()
TEXT = "Grüße\n".encode()


def add_final(api: RunningApi, *, has_result: bool = True, **values: Any) -> UUID:
    values = {"state": DocumentState.SUCCEEDED, **values}
    with api.database.transaction() as session:
        document_id = add_document(session, **values)
        document = session.get_one(Document, document_id)
        document.dispatch_after = None
        if has_result:
            document.result_key = keys.result_key(document_id, 1)
            api.store.put(document.result_key, RESULT, media_type="application/json")
            text_key = keys.result_text_key(document_id, 1)
            api.store.put(text_key, TEXT, media_type="text/plain")
    return document_id


def test_a_result_is_streamed_as_it_is_stored(api: RunningApi) -> None:
    document_id = add_final(api)

    response = api.client.get(f"/v1/documents/{document_id}/result")

    assert (response.status_code, response.content) == (200, RESULT)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Content-Length"] == str(len(RESULT))
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_result_is_given_as_text(api: RunningApi) -> None:
    document_id = add_final(api)

    response = api.client.get(f"/v1/documents/{document_id}/result?format=text")

    assert (response.status_code, response.text) == (200, "Grüße\n")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Content-Length"] == str(len(TEXT))


def test_the_links_of_a_document_lead_to_its_result(api: RunningApi) -> None:
    links = api.client.get(f"/v1/documents/{add_final(api)}").json()["links"]

    assert api.client.get(links["result"]).content == RESULT
    assert api.client.get(links["text"]).content == TEXT


def test_a_large_result_arrives_whole(api: RunningApi) -> None:
    document_id = add_final(api)
    large = bytes(range(256)) * 40_000
    api.store.put(keys.result_key(document_id, 1), large, media_type="application/json")

    response = api.client.get(f"/v1/documents/{document_id}/result")

    assert response.content == large


def test_a_result_is_saved_under_the_name_of_its_document(api: RunningApi) -> None:
    document_id = add_final(api, filename='R"e\u00e9.scan.pdf')

    response = api.client.get(f"/v1/documents/{document_id}/result?format=text")

    disposition = response.headers["Content-Disposition"]
    assert disposition == (
        "attachment; filename=\"R_e_.scan.txt\"; filename*=UTF-8''R%22e%C3%A9.scan.txt"
    )


def test_a_result_that_the_client_has_is_not_sent_again(api: RunningApi) -> None:
    address = f"/v1/documents/{add_final(api)}/result"
    etag = api.client.get(address).headers["ETag"]

    response = api.client.get(address, headers={"If-None-Match": etag})

    assert (response.status_code, response.content) == (304, b"")


def test_the_formats_of_a_result_have_tags_of_their_own(api: RunningApi) -> None:
    address = f"/v1/documents/{add_final(api)}/result"

    tags = {api.client.get(f"{address}?format={each}").headers["ETag"] for each in ("json", "text")}

    assert len(tags) == 2


def test_the_result_of_an_open_document_is_not_ready(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id = add_document(session)

    response = api.client.get(f"/v1/documents/{document_id}/result")

    assert (response.status_code, response.json()["code"]) == (409, "not_ready")
    assert int(response.headers["Retry-After"]) > 0


def test_a_document_that_failed_without_a_result_says_why(api: RunningApi) -> None:
    document_id = add_final(
        api, has_result=False, state=DocumentState.FAILED, error_code="encrypted"
    )

    response = api.client.get(f"/v1/documents/{document_id}/result")

    problem = response.json()
    assert (response.status_code, problem["code"]) == (409, "no_result")
    assert problem["document_error"]["code"] == "encrypted"
    assert "password" in problem["document_error"]["message"]


def test_a_result_that_storage_lost_is_our_fault_and_no_half_answer(api: RunningApi) -> None:
    document_id = add_final(api)
    api.store.delete([keys.result_key(document_id, 1)])

    response = api.client.get(f"/v1/documents/{document_id}/result")

    assert (response.status_code, response.json()["code"]) == (500, "internal")


def test_an_unknown_format_is_refused(api: RunningApi) -> None:
    response = api.client.get(f"/v1/documents/{add_final(api)}/result?format=docx")

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


def test_a_reader_that_leaves_does_not_harm_the_next_one(api: RunningApi) -> None:
    document_id = add_final(api)
    large = bytes(20 * 2**20)
    api.store.put(keys.result_key(document_id, 1), large, media_type="application/json")
    address = f"/v1/documents/{document_id}/result"

    with api.client.stream("GET", address) as response:
        next(response.iter_raw())
    content = api.client.get(address).content

    assert content == large


def test_the_result_of_another_tenant_is_not_found(api: RunningApi, stranger: httpx.Client) -> None:
    response = stranger.get(f"/v1/documents/{add_final(api)}/result")

    assert response.status_code == 404
