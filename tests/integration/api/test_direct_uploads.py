"""Files that clients put into storage themselves, from announcement to document."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import structlog

from db import api_keys
from storage import keys, source_object
from tests.support.api_server import (
    RunningApi,
    Serve,
    client_of,
    documents_in,
    keys_in,
    wait_until,
)
from tests.support.direct_uploads import (
    announce,
    announced,
    clear,
    complete,
    parts_in,
    rows_in,
    send,
    sent,
)
from tests.support.rows import add_document
from tests.support.services import S3Bucket, s3_client
from workers.source_file import SourceFile

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 8
# Two parts of the smallest size that storage takes.
LARGE = b"%PDF-1.7\n" + bytes(range(256)) * (7 * 2**12)
SMALL_PARTS = {"api_direct_upload_part_bytes": 5 * 2**20}
EVERY_TIME = {"api_capacity_cache_s": 0}


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def room(client: httpx.Client) -> int:
    pages: int = client.get("/v1/capacity").json()["interactive"]["room_pages"]
    return pages


def view_of(client: httpx.Client, upload: dict[str, Any]) -> dict[str, Any]:
    answer = client.get(upload["links"]["self"])
    assert answer.status_code == 200
    view: dict[str, Any] = answer.json()
    return view


def test_a_whole_number_may_be_written_as_json_has_it(api: RunningApi) -> None:
    upload = announced(api.client, PDF, size_bytes=float(len(PDF)))
    (etag,) = send(upload, PDF).values()

    answer = api.client.post(
        upload["links"]["complete"], json={"parts": [{"part_number": 1.0, "etag": etag}]}
    )

    assert answer.status_code == 202


def test_a_small_file_is_one_put_and_becomes_a_document(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    first = announce(api.client, PDF, sha256=sha256_of(PDF), options={"dpi": 300})
    upload = first.json()
    before = view_of(api.client, upload)
    send(upload, PDF)

    answer = complete(api.client, upload)

    view = answer.json()
    (row,) = documents_in(api.database)
    assert first.status_code == 201
    assert first.headers["Location"] == upload["links"]["self"]
    assert (upload["part_count"], len(upload["parts"]), upload["next_part"]) == (1, 1, None)
    assert (before["state"], before["links"]["document"]) == ("open", None)
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/documents/{upload['id']}"
    assert (view["id"], view["state"]) == (upload["id"], "queued")
    assert (view["filename"], view["size_bytes"]) == ("ledger.pdf", len(PDF))
    assert (view["media_type"], view["sha256"]) == ("application/pdf", sha256_of(PDF))
    assert row.source == {"kind": "direct_upload", "key": keys.source_key(row.id)}
    assert row.options["dpi"] == 300
    assert row.key_id is not None
    assert api.dispatch.sent == [row.id]
    assert keys_in(api.store) == [keys.source_key(row.id)]
    assert (rows_in(api.database), parts_in(s3_bucket)) == ([], [])


def test_workers_find_the_bytes_where_those_of_any_document_are(
    api: RunningApi, tmp_path: Path
) -> None:
    complete(api.client, sent(api.client, PDF))
    (row,) = documents_in(api.database)

    fetched = SourceFile(api.store, folder=tmp_path / "slot").fetch(row.id, sha256=row.sha256)

    assert source_object.from_row(row.source) is None
    assert fetched.read_bytes() == PDF


def test_a_large_file_is_sent_in_parts(serve: Serve) -> None:
    with serve(settings=SMALL_PARTS) as api:
        upload = announced(api.client, LARGE, sha256=sha256_of(LARGE))
        etags = send(upload, LARGE)

        answer = complete(api.client, upload, etags)

    assert [part["size_bytes"] for part in upload["parts"]] == [5 * 2**20, len(LARGE) - 5 * 2**20]
    assert answer.status_code == 202
    assert answer.json()["sha256"] == sha256_of(LARGE)
    assert b"".join(api.store.stream(keys.source_key(UUID(upload["id"])))) == LARGE


def test_what_goes_with_a_file_is_kept(api: RunningApi) -> None:
    batch = api.client.post("/v1/batches", json={"name": "b", "options": {"dpi": 300}}).json()
    fields = {
        "batch_id": batch["id"],
        "external_id": "shelf 7",
        "metadata": {"z": 1, "a": ["ü"]},
        "options": {"mode": "ocr"},
    }
    upload = sent(api.client, PDF, filename="in/le<dger.pdf", **fields)

    view = complete(api.client, upload).json()

    assert upload["filename"] == view["filename"] == "le_dger.pdf"
    assert (view["batch_id"], view["external_id"]) == (batch["id"], "shelf 7")
    assert (view["metadata"], view["priority"]) == (fields["metadata"], "bulk")
    assert list(view["metadata"]) == ["z", "a"]
    assert (view["options"]["dpi"], view["options"]["mode"]) == (300, "ocr")


def test_a_file_is_complete_when_all_of_its_parts_are_there(serve: Serve) -> None:
    with serve(settings=SMALL_PARTS) as api:
        upload = announced(api.client, LARGE)
        nothing = complete(api.client, upload)
        send(upload, LARGE, 1)
        half = complete(api.client, upload)
        send(upload, LARGE, 2)
        whole = complete(api.client, upload)

    assert code_of(nothing) == code_of(half) == (409, "upload_incomplete")
    assert nothing.json()["missing_parts"] == [1, 2]
    assert half.json()["missing_parts"] == [2]
    assert whole.status_code == 202


def test_parts_are_listed_with_new_addresses(serve: Serve) -> None:
    with serve(settings=SMALL_PARTS) as api:
        upload = announced(api.client, LARGE)
        send(upload, LARGE, 1)
        page = api.client.get(upload["links"]["parts"]).json()
        only = api.client.get(upload["links"]["parts"], params={"first": 2, "limit": 1}).json()
        first = api.client.get(upload["links"]["parts"], params={"limit": 1}).json()
        none = api.client.get(upload["links"]["parts"], params={"first": 3}).json()
        send({**upload, "parts": only["parts"]}, LARGE)
        answer = complete(api.client, upload)

    assert [(part["part_number"], part["is_stored"]) for part in page["parts"]] == [
        (1, True),
        (2, False),
    ]
    assert ([part["part_number"] for part in only["parts"]], only["next_part"]) == ([2], None)
    assert first["next_part"] == 2
    assert none == {"parts": [], "next_part": None}
    assert answer.status_code == 202


def test_a_part_whose_etag_is_another_is_missing(api: RunningApi) -> None:
    upload = sent(api.client, PDF)

    answer = complete(api.client, upload, {1: '"0123"'})

    assert code_of(answer) == (409, "upload_incomplete")
    assert answer.json()["missing_parts"] == [1]
    assert complete(api.client, upload).status_code == 202


def test_storage_refuses_another_length(api: RunningApi) -> None:
    upload = announced(api.client, PDF)

    answer = httpx.put(upload["parts"][0]["url"], content=PDF + b"x")

    assert answer.status_code == 403
    assert code_of(complete(api.client, upload)) == (409, "upload_incomplete")


def test_a_length_that_storage_did_not_refuse_is_noticed(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    upload = announced(api.client, PDF)
    key = keys.source_key(UUID(upload["id"]))
    client = s3_client(s3_bucket)
    (found,) = client.list_multipart_uploads(Bucket=s3_bucket.name)["Uploads"]
    client.upload_part(
        Bucket=s3_bucket.name, Key=key, UploadId=found["UploadId"], PartNumber=1, Body=PDF + b"x"
    )

    answer = complete(api.client, upload)

    assert code_of(answer) == (409, "upload_incomplete")
    assert answer.json()["missing_parts"] == [1]
    assert keys_in(api.store) == []


def test_other_bytes_than_were_announced_are_refused_for_good(
    api: RunningApi, s3_bucket: S3Bucket
) -> None:
    upload = announced(api.client, PDF, sha256=sha256_of(PDF))
    send(upload, PDF[:-1] + b"x")

    answers = [complete(api.client, upload) for _ in range(2)]
    view = view_of(api.client, upload)
    parts = api.client.get(upload["links"]["parts"])
    clear(api.database, api.store)

    assert [code_of(answer) for answer in answers] == [(422, "upload_mismatch")] * 2
    assert (view["state"], view["error"]["code"]) == ("failed", "upload_mismatch")
    assert code_of(parts) == (409, "upload_ended")
    assert (documents_in(api.database), keys_in(api.store), parts_in(s3_bucket)) == ([], [], [])


def test_a_type_that_is_not_read_is_refused_for_good(api: RunningApi) -> None:
    upload = sent(api.client, b"a text of somebody")

    answers = [complete(api.client, upload) for _ in range(2)]

    assert [code_of(answer) for answer in answers] == [(415, "unsupported_media_type")] * 2
    assert view_of(api.client, upload)["state"] == "failed"
    assert documents_in(api.database) == []


def test_completed_twice_it_is_one_document(api: RunningApi) -> None:
    upload = sent(api.client, PDF)
    first = complete(api.client, upload)

    again = complete(api.client, upload)

    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert len(documents_in(api.database)) == len(api.dispatch.sent) == 1
    view = view_of(api.client, upload)
    assert (view["state"], view["links"]["document"]) == ("completed", first.headers["Location"])
    assert view["sha256"] == sha256_of(PDF)


def test_completed_at_the_same_time_it_is_one_document(serve: Serve) -> None:
    with serve(settings=SMALL_PARTS) as api:
        upload = sent(api.client, LARGE)
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: complete(api.client, upload), range(6)))
        last = complete(api.client, upload)

        (row,) = documents_in(api.database)
        assert api.dispatch.sent == [row.id]

    taken = [answer for answer in answers if answer.status_code == 202]
    others = [answer for answer in answers if answer.status_code != 202]
    assert {answer.json()["id"] for answer in (*taken, last)} == {str(row.id)}
    assert {code_of(answer) for answer in others} <= {(409, "upload_checking")}
    assert all(answer.headers["Retry-After"] for answer in others)


def test_nobody_changes_a_file_once_it_is_a_document(api: RunningApi) -> None:
    upload = sent(api.client, PDF)
    complete(api.client, upload)

    late = httpx.put(upload["parts"][0]["url"], content=PDF[:-1] + b"x")

    assert late.status_code == 404
    assert api.store.get(keys.source_key(UUID(upload["id"]))) == PDF
    assert code_of(api.client.get(upload["links"]["parts"])) == (409, "upload_ended")
    assert code_of(api.client.delete(upload["links"]["self"])) == (409, "upload_ended")


def test_another_tenant_finds_no_upload(api: RunningApi, stranger: httpx.Client) -> None:
    upload = sent(api.client, PDF)
    address = upload["links"]["self"]

    answers = [
        stranger.get(address),
        stranger.get(upload["links"]["parts"]),
        stranger.post(upload["links"]["complete"]),
        stranger.delete(address),
    ]
    done = complete(api.client, upload)
    answers += [stranger.get(address), stranger.post(upload["links"]["complete"])]

    assert {code_of(answer) for answer in answers} == {(404, "not_found")}
    assert done.status_code == 202


def test_a_document_that_came_with_its_request_is_no_upload(api: RunningApi) -> None:
    document = api.client.post("/v1/documents", files={"file": ("a.pdf", PDF)}).json()

    answers = [
        api.client.get(f"/v1/uploads/{document['id']}"),
        api.client.post(f"/v1/uploads/{document['id']}/complete"),
        api.client.delete(f"/v1/uploads/{document['id']}"),
    ]

    assert {code_of(answer) for answer in answers} == {(404, "not_found")}


def test_announced_again_it_is_the_same_upload(api: RunningApi) -> None:
    first = announce(api.client, PDF, key="once", external_id="7")
    send(first.json(), PDF)

    again = announce(api.client, PDF, key="once", external_id="7")
    other = announce(api.client, PDF, key="once", external_id="8")
    complete(api.client, first.json())
    late = announce(api.client, PDF, key="once", external_id="7")
    late_other = announce(api.client, PDF, key="once", external_id="8")

    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json()["parts"][0]["is_stored"]
    assert code_of(other) == code_of(late_other) == (422, "idempotency_mismatch")
    assert (late.json()["id"], late.json()["state"]) == (first.json()["id"], "completed")
    assert late.json()["parts"] == []
    assert len(documents_in(api.database)) == 1


def test_a_key_of_a_document_announces_nothing(api: RunningApi) -> None:
    api.client.post(
        "/v1/documents",
        files={"file": ("ledger.pdf", PDF)},
        headers={"Idempotency-Key": "once"},
    )

    assert code_of(announce(api.client, PDF, key="once")) == (422, "idempotency_mismatch")


def test_a_key_that_another_document_took_meanwhile_completes_nothing(api: RunningApi) -> None:
    upload = sent(api.client, PDF, key="once")
    api.client.post(
        "/v1/documents",
        files={"file": ("other.pdf", PDF)},
        headers={"Idempotency-Key": "once"},
    )

    assert code_of(complete(api.client, upload)) == (422, "idempotency_mismatch")
    assert len(documents_in(api.database)) == 1


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"size_bytes": 10 * 2**20 + 1}, 413, "file_too_large"),
        ({"size_bytes": 0}, 422, "invalid_request"),
        ({"size_bytes": True}, 422, "invalid_request"),
        ({"size_bytes": "10"}, 422, "invalid_request"),
        ({"size_bytes": 10.5}, 422, "invalid_request"),
        ({"filename": ""}, 422, "invalid_request"),
        ({"sha256": "0"}, 422, "invalid_request"),
        ({"options": {"dpi": 1}}, 422, "invalid_request"),
        ({"metadata": {"a": "x" * 20_000}}, 422, "invalid_request"),
        ({"owner": "me"}, 422, "invalid_request"),
        ({"batch_id": "00000000-0000-0000-0000-000000000000"}, 404, "unknown_batch"),
    ],
)
def test_what_could_be_no_document_is_refused_before_it_is_sent(
    api: RunningApi, s3_bucket: S3Bucket, fields: dict[str, Any], status: int, code: str
) -> None:
    answer = announce(api.client, PDF, **fields)

    assert code_of(answer) == (status, code)
    assert (rows_in(api.database), parts_in(s3_bucket)) == ([], [])


@pytest.mark.parametrize("value", ["NaN", "1e999", '"\\ud800"'])
def test_metadata_that_are_no_json_are_refused(api: RunningApi, value: str) -> None:
    body = f'{{"filename": "a.pdf", "size_bytes": 1, "metadata": {{"a": {value}}}}}'

    answer = api.client.post(
        "/v1/uploads", content=body, headers={"Content-Type": "application/json"}
    )

    assert code_of(answer) == (422, "invalid_request")


def test_a_closed_batch_takes_no_file_at_either_end(api: RunningApi) -> None:
    batch = api.client.post("/v1/batches", json={"name": "b"}).json()
    upload = sent(api.client, PDF, batch_id=batch["id"])
    api.client.post(f"/v1/batches/{batch['id']}/cancel")

    refused = announce(api.client, PDF, batch_id=batch["id"])

    assert code_of(refused) == code_of(complete(api.client, upload)) == (409, "batch_closed")
    assert documents_in(api.database) == []


def test_a_tenant_has_so_many_files_on_their_way(serve: Serve) -> None:
    with serve(settings={"api_max_direct_uploads": 2}) as api:
        first, _ = (announced(api.client, PDF) for _ in range(2))
        refused = announce(api.client, PDF)
        api.client.delete(first["links"]["self"])
        taken = announce(api.client, PDF)

    assert code_of(refused) == (503, "too_many_uploads")
    assert taken.status_code == 201


def test_a_full_system_takes_no_file_at_either_end(serve: Serve) -> None:
    with serve(settings={**EVERY_TIME, "api_max_open_pages_interactive": 5}) as api:
        upload = sent(api.client, PDF)
        with api.database.transaction() as session:
            document_id = add_document(session, page_estimate=5, priority="interactive")
        # A count is used for twenty times as long as it took.
        wait_until(lambda: not room(api.client), what="a full system")
        refused = announce(api.client, PDF)
        full = complete(api.client, upload)
        api.client.post(f"/v1/documents/{document_id}/cancel")
        wait_until(lambda: complete(api.client, upload).status_code == 202, what="room")

    assert code_of(refused) == code_of(full) == (503, "system_full")
    assert int(full.headers["Retry-After"]) >= 5


def test_a_quota_is_counted_when_the_document_is_made(api: RunningApi) -> None:
    with api.database.transaction() as session:
        key = api_keys.create(session, tenant="archive", name="quota", max_pages_per_day=1)
    with client_of(api.url, key) as client:
        first, second = sent(client, PDF), sent(client, PDF)
        taken = complete(client, first)
        refused = complete(client, second)
        announcement = announce(client, PDF)
    by_another_key = complete(api.client, second)

    assert taken.status_code == 202
    assert code_of(refused) == code_of(announcement) == (429, "quota_exceeded")
    assert by_another_key.status_code == 202


def test_a_result_may_be_waited_for_longer_than_for_an_answer(serve: Serve) -> None:
    with serve(settings={"api_answer_timeout_s": 6.0}) as api:
        upload = sent(api.client, PDF)

        answer = api.client.post(upload["links"]["complete"], headers={"Prefer": "wait=8"})

    assert answer.status_code == 202
    assert answer.headers["Preference-Applied"] == "wait=8"


def test_addresses_are_not_logged(api: RunningApi, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"), structlog.testing.capture_logs() as lines:
        upload = sent(api.client, PDF)
        api.client.get(upload["links"]["parts"])
        complete(api.client, upload)
    own = [record for record in caplog.records if not record.name.startswith("httpx")]

    assert "X-Amz-Signature" in upload["parts"][0]["url"]
    assert [line["event"] for line in lines if line["event"] == "document accepted"]
    assert "X-Amz-" not in str(lines) + str([record.getMessage() for record in own])


def test_an_address_lasts_no_longer_than_it_is_told_to(serve: Serve) -> None:
    settings = {"api_direct_upload_address_s": 120, "api_direct_upload_expires_s": 60}
    with serve(settings=settings) as api:
        upload = announced(api.client, PDF)

    url = httpx.URL(upload["parts"][0]["url"])
    assert 50 <= int(url.params["X-Amz-Expires"]) <= 60
    ends = [upload["parts"][0]["url_expires_at"], upload["expires_at"]]
    assert ends == sorted(ends, key=datetime.fromisoformat)
