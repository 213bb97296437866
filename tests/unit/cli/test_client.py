import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from cli.client import UNREACHABLE, ApiClient
from cli.errors import ApiError

BATCH_ID = UUID("019ab8e2-6f3c-7c11-9d5e-0a1b2c3d4e5f")


def fail_to_wait(seconds: float) -> None:
    raise AssertionError(seconds)


def make_client(
    answer: Callable[[httpx.Request], httpx.Response],
    *,
    wait: Callable[[float], object] = fail_to_wait,
) -> ApiClient:
    return ApiClient("http://api.test/", "pf_1_2", transport=httpx.MockTransport(answer), wait=wait)


def document_view(**changes: Any) -> dict[str, Any]:
    view = {
        "id": str(BATCH_ID),
        "filename": "a.pdf",
        "state": "recognizing",
        "progress": {"pages": 3, "ok": 1, "failed": 1, "skipped": 0, "left": 1},
        "truncated": False,
        "error": None,
        "links": {"result": None},
    }
    return view | changes


def test_a_call_presents_the_key() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Authorization"])
        return httpx.Response(200, json={"status": "ready"})

    make_client(answer).require_ready()

    assert seen == ["Bearer pf_1_2"]


def test_a_document_is_read_with_its_progress() -> None:
    client = make_client(lambda _: httpx.Response(200, json=document_view()))

    document = client.document(BATCH_ID)

    assert (document.pages, document.pages_done, document.pages_failed) == (3, 2, 1)
    assert not document.is_final


def test_a_file_is_sent_with_its_batch_before_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF-1.7")
    bodies: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.read())
        return httpx.Response(202, json=document_view())

    make_client(answer).submit(file, batch_id=BATCH_ID)

    # The API passes the file on while it arrives, and has to know the batch by then.
    assert bodies[0].index(str(BATCH_ID).encode()) < bodies[0].index(b"%PDF-1.7")


def test_a_file_can_be_sent_again_under_its_key(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF-1.7")
    seen: list[tuple[str, bytes]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.headers["Idempotency-Key"], request.read()))
        return httpx.Response(202, json=document_view())

    make_client(answer).submit(file, priority="bulk", idempotency_key="storm-1")

    ((key, body),) = seen
    assert key == "storm-1"
    assert b'name="priority"\r\n\r\nbulk' in body
    assert b"batch_id" not in body


def test_a_listing_is_followed_to_its_end() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_second = request.url.params.get("cursor") == "next"
        cursor = None if is_second else "next"
        return httpx.Response(200, json={"documents": [document_view()], "next_cursor": cursor})

    assert len(list(make_client(answer).documents())) == 2


def test_a_refusal_has_the_code_and_the_sentence_of_the_problem() -> None:
    problem = {"code": "empty", "detail": "The file has no bytes.", "status": 422}
    client = make_client(lambda _: httpx.Response(422, json=problem))

    with pytest.raises(ApiError) as refused:
        client.document(BATCH_ID)

    assert (refused.value.code, refused.value.status) == ("empty", 422)
    assert refused.value.message == "The file has no bytes."


def test_a_refused_key_is_told_how_to_give_one() -> None:
    client = make_client(lambda _: httpx.Response(401, json={"code": "unauthenticated"}))

    with pytest.raises(ApiError) as refused:
        client.document(BATCH_ID)

    assert "--api-key" in refused.value.remedy
    assert "does not know the key that was sent" in refused.value.message


def test_a_client_without_a_key_is_told_that_one_is_wanted() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(401, json={"code": "unauthenticated"}))

    with pytest.raises(ApiError, match="wants a key"):
        ApiClient("http://api.test/", None, transport=transport).document(BATCH_ID)


def test_an_api_that_does_not_answer_is_unreachable() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(ApiError) as refused:
        make_client(answer).require_ready()

    assert refused.value.code == UNREACHABLE
    assert "pagefleet up" in refused.value.remedy


@pytest.mark.parametrize("body", [b"<html>", json.dumps([1]).encode()])
def test_something_that_is_no_api_is_an_error_and_no_traceback(body: bytes) -> None:
    client = make_client(lambda _: httpx.Response(200, content=body))

    with pytest.raises(ApiError):
        client.require_ready()


def too_often(code: str = "too_many_requests") -> httpx.Response:
    problem = {"code": code, "detail": "Wait.", "status": 429}
    return httpx.Response(429, json=problem, headers={"Retry-After": "7"})


@pytest.mark.parametrize("code", ["too_many_requests", "too_many_dry_runs"])
def test_a_key_that_has_asked_too_often_waits_and_asks_again(code: str) -> None:
    answers = iter([too_often(code), httpx.Response(200, json=document_view())])
    waited: list[float] = []
    client = make_client(lambda _: next(answers), wait=waited.append)

    assert client.document(BATCH_ID).id == BATCH_ID
    assert waited == [7]


def test_a_key_that_is_refused_for_ever_is_given_up() -> None:
    waited: list[float] = []
    client = make_client(lambda _: too_often(), wait=waited.append)

    with pytest.raises(ApiError, match="Wait"):
        client.document(BATCH_ID)

    assert waited == [7] * 29


def test_a_file_that_came_too_often_is_its_senders_to_send_again(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF-1.7")
    client = make_client(lambda _: too_often())

    with pytest.raises(ApiError) as refused:
        client.submit(file)

    assert (refused.value.code, refused.value.retry_after_s) == ("too_many_requests", 7.0)


def test_a_result_that_was_asked_for_too_often_is_asked_for_later(tmp_path: Path) -> None:
    client = make_client(lambda _: too_often())

    assert client.fetch_result(BATCH_ID, tmp_path / "a.pdf", name="pdf") == 7.0
    assert not (tmp_path / "a.pdf").exists()


def test_a_quota_that_is_used_up_is_not_waited_for() -> None:
    problem = {"code": "quota_exceeded", "detail": "Tomorrow.", "status": 429}
    client = make_client(lambda _: httpx.Response(429, json=problem))

    with pytest.raises(ApiError, match="Tomorrow"):
        client.document(BATCH_ID)


def test_a_report_that_was_asked_for_too_often_comes_after_a_wait() -> None:
    answers = iter([too_often(), httpx.Response(200, text="a\nb")])
    waited: list[float] = []
    client = make_client(lambda _: next(answers), wait=waited.append)

    assert list(client.report(BATCH_ID, report_format="csv")) == ["a\n", "b"]
    assert waited == [7]


def test_what_a_newer_api_says_besides_of_a_counted_batch_is_left_out() -> None:
    plan = {
        "files": 3,
        "size_bytes": 120,
        "pages": 2,
        "estimated_pages": 4,
        "missing": 1,
        "skipped": 0,
        "seconds": 1.5,
        "next_cursor": None,
        "colors": 7,
    }
    client = make_client(lambda _: httpx.Response(200, json=plan))

    planned = client.plan_batch("boxes", options={}, source={})

    assert (planned.files, planned.estimated_pages, planned.next_cursor) == (3, 4, None)
