"""One page through the API: its text, and its image that is drawn when it is asked for."""

import gzip
import json
import time
from typing import Any
from uuid import UUID

import pytest

from db.models import Page
from db.states import DocumentState, PageState
from storage import keys
from tests.support.api_server import RecordedDrawings, RunningApi, Serve
from tests.support.rows import add_document
from workers.dispatch import DispatchError

PAGE = {"page_number": 2, "state": "ok", "lines": [{"text": "Grüße"}]}
IMAGE = b"\xff\xd8 an image"


def add_read(api: RunningApi, **values: Any) -> UUID:
    """Add a document of two pages whose second one was read."""
    member = gzip.compress(json.dumps(PAGE).encode())
    with api.database.transaction() as session:
        document_id = add_document(session, state=DocumentState.RECOGNIZING)
        key = keys.chunk_pages_key(document_id, document_id, 1)
        api.store.put(key, b"before" + member + b"after", media_type="application/x-ndjson")
        session.add(Page(document_id=document_id, page_index=0, generation=1, attempts=0))
        second = {
            "state": PageState.OK,
            "route": "ocr",
            "result_key": key,
            "result_start": 6,
            "result_stop": 6 + len(member),
            **values,
        }
        session.add(Page(document_id=document_id, page_index=1, generation=1, attempts=1, **second))
    return document_id


def test_a_page_is_told_with_what_was_read_on_it(api: RunningApi) -> None:
    document_id = add_read(api)

    answer = api.client.get(f"/v1/documents/{document_id}/pages/2")

    assert answer.status_code == 200
    assert answer.json()["result"] == PAGE
    assert (answer.json()["page"]["page_number"], answer.json()["page"]["state"]) == (2, "ok")
    again = api.client.get(
        f"/v1/documents/{document_id}/pages/2", headers={"If-None-Match": answer.headers["ETag"]}
    )
    assert again.status_code == 304


def test_a_page_that_is_not_read_yet_has_no_result(api: RunningApi) -> None:
    answer = api.client.get(f"/v1/documents/{add_read(api)}/pages/1")

    assert (answer.json()["page"]["state"], answer.json()["result"]) == ("queued", None)


@pytest.mark.parametrize(
    ("number", "status"), [("3", 404), ("0", 422), ("one", 422), (str(2**31), 422)]
)
@pytest.mark.parametrize("rest", ["", "/image"])
def test_a_page_that_is_not_there_is_not_found(
    api: RunningApi, number: str, status: int, rest: str
) -> None:
    answer = api.client.get(f"/v1/documents/{add_read(api)}/pages/{number}{rest}")

    assert answer.status_code == status


def test_an_image_is_asked_for_and_then_there(serve: Serve) -> None:
    drawings = RecordedDrawings()
    with serve(send_drawing=drawings) as api:
        document_id = add_read(api)
        address = f"/v1/documents/{document_id}/pages/2/image"

        first = api.client.get(address)
        api.store.put(keys.page_image_key(document_id, 1, 1), IMAGE, media_type="image/jpeg")
        second = api.client.get(address)
        third = api.client.get(address, headers={"If-None-Match": second.headers["ETag"]})

    assert (first.status_code, first.headers["Retry-After"]) == (202, "1")
    assert first.json() == {"state": "drawing"}
    assert drawings.asked == [(document_id, 1)]
    assert (second.status_code, second.content) == (200, IMAGE)
    assert second.headers["Content-Type"] == "image/jpeg"
    assert second.headers["Content-Length"] == str(len(IMAGE))
    assert third.status_code == 304


def test_a_page_that_is_worked_on_has_no_image_yet(api: RunningApi) -> None:
    answer = api.client.get(f"/v1/documents/{add_read(api)}/pages/1/image")

    assert (answer.status_code, answer.json()["code"]) == (409, "not_ready")


def test_an_image_that_cannot_be_drawn_says_why(api: RunningApi) -> None:
    document_id = add_read(api)
    key = keys.page_image_error_key(document_id, 1, 1)
    until_s = time.time() + 60
    api.store.put(key, f"page_too_large {until_s:.0f}".encode(), media_type="text/plain")

    answer = api.client.get(f"/v1/documents/{document_id}/pages/2/image")

    assert (answer.status_code, answer.json()["code"]) == (409, "no_image")
    assert answer.json()["page_error"]["code"] == "page_too_large"


@pytest.mark.parametrize("reason", ["page_timeout 1700000000", "page_timeout"])
def test_an_image_that_could_not_be_drawn_long_ago_is_asked_for_again(
    serve: Serve, reason: str
) -> None:
    drawings = RecordedDrawings()
    with serve(send_drawing=drawings) as api:
        document_id = add_read(api)
        key = keys.page_image_error_key(document_id, 1, 1)
        api.store.put(key, reason.encode(), media_type="text/plain")

        answer = api.client.get(f"/v1/documents/{document_id}/pages/2/image")

    assert answer.status_code == 202
    assert drawings.asked == [(document_id, 1)]


def test_no_room_for_an_image_is_told(serve: Serve) -> None:
    with serve(send_drawing=RecordedDrawings(has_room=False)) as api:
        answer = api.client.get(f"/v1/documents/{add_read(api)}/pages/2/image")

    assert (answer.status_code, answer.json()["code"]) == (503, "too_many_images")
    assert "Retry-After" in answer.headers


def test_a_broker_that_is_away_is_told(serve: Serve) -> None:
    def away(*_: object, **__: object) -> bool:
        raise DispatchError

    with serve(send_drawing=away) as api:
        answer = api.client.get(f"/v1/documents/{add_read(api)}/pages/2/image")

    assert (answer.status_code, answer.json()["code"]) == (503, "busy")


def test_the_pages_of_another_tenant_are_not_found(api: RunningApi) -> None:
    with api.database.transaction() as session:
        document_id = add_document(session, tenant="another")
        session.add(Page(document_id=document_id, page_index=0, generation=1, attempts=0))

    for rest in ("", "/image"):
        answer = api.client.get(f"/v1/documents/{document_id}/pages/1{rest}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
