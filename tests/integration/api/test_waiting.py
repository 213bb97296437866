"""``Prefer: wait``: the result in the answer to the upload, if it comes in time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

import httpx

from db import api_keys, documents, planned_chunks
from db.scopes import Scope
from db.states import DocumentState
from tests.support.api_server import RunningApi, Serve, client_of, documents_in, wait_until
from tests.support.rows import claim_split

PDF = b"%PDF-1.7\n" + bytes(2_000)
FILES = {"file": ("a.pdf", PDF)}
RESULT = b'{"schema":"pagefleet/1"}'


def finish(api: RunningApi, document_id: UUID) -> None:
    """Do what workers do, short of reading anything."""
    api.store.put("results/a", RESULT, media_type="application/json")
    finish_without_object(api, document_id)


def finish_without_object(api: RunningApi, document_id: UUID) -> None:
    with api.database.transaction() as session:
        claim = claim_split(session, document_id)
        planned = planned_chunks.plan_chunks(range(1), chunk_pages=1)
        documents.start_recognizing(
            session, claim, page_count=1, chunks=planned, chord_grace_s=None
        )
        session.connection().exec_driver_sql("UPDATE chunks SET state = 'succeeded'")
        assembly = documents.claim_assembly(
            session, document_id, generation=1, worker="a", lease_s=60, max_attempts=4
        )
        assert assembly is not None
        documents.finish(
            session,
            assembly,
            state=DocumentState.SUCCEEDED,
            result_key="results/a",
            result_size_bytes=len(RESULT),
            values={"pages_ok": 1},
        )


def fail(api: RunningApi, document_id: UUID) -> None:
    with api.database.transaction() as session:
        claim = claim_split(session, document_id)
        documents.fail(session, claim, code="damaged", detail="It is damaged.")


@contextmanager
def worker(api: RunningApi, work: Callable[[RunningApi, UUID], None]) -> Iterator[None]:
    """Do the work for the document that is about to be sent, in a thread."""

    def run() -> None:
        wait_until(lambda: bool(documents_in(api.database)), what="a document")
        (document,) = documents_in(api.database)
        work(api, document.id)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


def send(api: RunningApi, *, wait: str = "wait=60", **headers: str) -> httpx.Response:
    return api.client.post("/v1/documents", files=FILES, headers={"Prefer": wait, **headers})


def test_the_result_is_the_answer_when_it_comes_in_time(api: RunningApi) -> None:
    with worker(api, finish):
        answer = send(api)

    (document,) = documents_in(api.database)
    address = f"/v1/documents/{document.id}"
    assert (answer.status_code, answer.content) == (200, RESULT)
    assert answer.headers["Location"] == address
    assert answer.headers["Content-Location"] == f"{address}/result?format=json"
    assert answer.headers["Preference-Applied"] == "wait=60"
    assert answer.headers["ETag"] == api.client.get(f"{address}/result").headers["ETag"]


def test_a_document_that_is_not_ready_in_time_is_accepted(api: RunningApi) -> None:
    answer = send(api, wait="wait=1")

    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    assert answer.headers["Location"] == answer.json()["links"]["self"]
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["Preference-Applied"] == "wait=1"


def test_a_document_that_ends_without_a_result_is_answered_at_once(api: RunningApi) -> None:
    with worker(api, fail):
        answer = send(api)

    assert (answer.status_code, answer.json()["error"]["code"]) == (202, "damaged")


def test_a_replayed_request_is_answered_with_the_result_of_the_first(api: RunningApi) -> None:
    with worker(api, finish):
        first = send(api, **{"Idempotency-Key": "k"})
    again = send(api, **{"Idempotency-Key": "k"})

    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"


def test_nobody_waits_longer_than_the_setting_allows(serve: Serve) -> None:
    with serve(settings={"api_max_wait_s": 1}) as api:
        answer = send(api, wait="wait=600")
    with serve(settings={"api_max_wait_s": 0}) as api:
        at_once = send(api, wait="wait=600")

    assert answer.headers["Preference-Applied"] == "wait=1"
    assert "Preference-Applied" not in at_once.headers
    assert (answer.status_code, at_once.status_code) == (202, 202)


def test_a_key_without_a_place_left_does_not_wait(serve: Serve) -> None:
    with serve(settings={"api_max_streams_per_key": 1}) as api:
        (first,) = (send(api, wait="wait=0") for _ in range(1))
        with api.client.stream("GET", f"{first.headers['Location']}/events"):
            answer = send(api, wait="wait=600")

    assert answer.status_code == 202


def test_a_result_that_cannot_be_fetched_leaves_the_document_accepted(api: RunningApi) -> None:
    with worker(api, finish_without_object):
        answer = send(api)

    assert (answer.status_code, answer.json()["state"]) == (202, "succeeded")


def test_an_upload_that_waits_holds_no_place_for_uploads(serve: Serve) -> None:
    with serve(settings={"api_max_uploads": 1}) as api, worker(api, finish_after_another_upload):
        answer = send(api)

    assert answer.status_code == 200


def finish_after_another_upload(api: RunningApi, document_id: UUID) -> None:
    sent = api.client.post("/v1/documents", files={"file": ("b.pdf", PDF)})
    assert sent.status_code == 202
    finish(api, document_id)


def test_a_client_that_goes_away_ends_the_wait(serve: Serve) -> None:
    with serve(settings={"api_max_streams_per_key": 1}) as api:
        with suppress(httpx.ReadTimeout):
            api.client.post("/v1/documents", files=FILES, headers={"Prefer": "wait=600"}, timeout=3)
        wait_until(lambda: bool(documents_in(api.database)), what="the document")
        (document,) = documents_in(api.database)

        def has_a_place() -> bool:
            address = f"/v1/documents/{document.id}/events"
            with api.client.stream("GET", address) as response:
                return response.status_code == 200

        wait_until(has_a_place, what="the place of the request that waited")


def test_who_repeats_what_another_key_has_sent_gets_no_result(api: RunningApi) -> None:
    with worker(api, finish):
        send(api, **{"Idempotency-Key": "a"})
    with api.database.transaction() as session:
        key = api_keys.create(session, tenant="archive", name="scanner", scopes=[Scope.WRITE])

    with client_of(api.url, key) as scanner:
        answer = scanner.post(
            "/v1/documents", files=FILES, headers={"Prefer": "wait=60", "Idempotency-Key": "a"}
        )

    assert (answer.status_code, answer.json()["state"]) == (202, "succeeded")
    assert answer.headers["Idempotent-Replayed"] == "true"
