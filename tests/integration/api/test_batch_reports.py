"""Lists, reports and retries of batches, and what a sender says of its documents."""

import csv
import io
import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from api import report_routes
from db import documents
from db.ids import new_id
from tests.support.api_server import RunningApi, Serve, documents_in
from tests.support.rows import add_document, claim_split

PDF = b"%PDF-1.7\n" + bytes(2_000)


def create(client: httpx.Client, name: str = "boxes", **headers: str) -> httpx.Response:
    return client.post("/v1/batches", json={"name": name}, headers=headers)


def submit(client: httpx.Client, *, filename: str = "a.pdf", **fields: str) -> httpx.Response:
    return client.post("/v1/documents", files={"file": (filename, PDF)}, data=fields)


def fail(api: RunningApi, document_id: str) -> None:
    with api.database.transaction() as session:
        claim = claim_split(session, UUID(document_id))
        documents.fail(session, claim, code="damaged", detail="x")


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_a_document_has_the_metadata_and_the_id_that_were_sent(api: RunningApi) -> None:
    sent = '{"z": 1, "a": {"box": "12\\u0000", "pages": [1.5, null]}}'

    view = submit(api.client, external_id="box-12/ä", metadata=sent).json()

    assert (view["external_id"], view["metadata"]) == ("box-12/ä", json.loads(sent))
    assert list(view["metadata"]) == ["z", "a"]
    assert api.client.get(view["links"]["self"]).json()["metadata"] == json.loads(sent)


@pytest.mark.parametrize(
    "sent", ['{"a":' * 150 + "1" + "}" * 150, f'{{"a": 1{"0" * 400}}}', '{"\U0010ffff": "\u202e"}']
)
def test_odd_metadata_is_returned_as_given(api: RunningApi, sent: str) -> None:
    view = submit(api.client, metadata=sent).json()

    assert view["metadata"] == json.loads(sent)
    assert api.client.get(view["links"]["self"]).json()["metadata"] == json.loads(sent)


def test_a_document_without_metadata_has_none(api: RunningApi) -> None:
    view = submit(api.client).json()

    assert (view["external_id"], view["metadata"]) == (None, None)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"metadata": "[1]"}, "metadata"),
        ({"metadata": "{"}, "metadata"),
        ({"metadata": '{"a": 1e999}'}, "metadata"),
        ({"metadata": '{"a": NaN}'}, "metadata"),
        ({"metadata": json.dumps({"a": "x" * 2**14})}, "metadata"),
        ({"external_id": "x" * 256}, "external_id"),
        ({"external_id": "a\nb"}, "external_id"),
    ],
)
def test_metadata_that_cannot_be_kept_is_refused(
    api: RunningApi, fields: dict[str, str], field: str
) -> None:
    answer = submit(api.client, **fields)

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert documents_in(api.database) == []


@pytest.mark.parametrize("other", [{"metadata": '{"a": 2}'}, {"external_id": "2"}])
def test_other_metadata_is_another_request(api: RunningApi, other: dict[str, str]) -> None:
    fields = {"metadata": '{"a": 1}', "external_id": "1"}
    headers = {"Idempotency-Key": "k"}

    def send(**data: str) -> httpx.Response:
        return api.client.post(
            "/v1/documents", files={"file": ("a.pdf", PDF)}, data=data, headers=headers
        )

    send(**fields)

    assert send(**fields).headers["Idempotent-Replayed"] == "true"
    assert send(**{**fields, **other}).json()["code"] == "idempotency_mismatch"


def test_a_batch_is_created_once_under_one_key(api: RunningApi) -> None:
    first, again = (create(api.client, **{"Idempotency-Key": "k"}) for _ in range(2))
    other = create(api.client, "other", **{"Idempotency-Key": "k"})

    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert create(api.client).json()["id"] != first.json()["id"]


def test_batches_are_listed_newest_first_with_their_counts(
    api: RunningApi, stranger: httpx.Client
) -> None:
    names = ["first", "second", "third"]
    ids = [create(api.client, name).json()["id"] for name in names]
    create(stranger, "of another tenant")
    for _ in range(2):
        submit(api.client, batch_id=ids[1])

    head = api.client.get("/v1/batches", params={"limit": 2}).json()
    tail = api.client.get("/v1/batches", params={"cursor": head["next_cursor"]}).json()

    assert [(b["name"], b["documents"]["total"]) for b in head["batches"]] == [
        ("third", 0),
        ("second", 2),
    ]
    assert [b["name"] for b in tail["batches"]] == ["first"]
    assert tail["next_cursor"] is None
    assert head["batches"][1] == api.client.get(f"/v1/batches/{ids[1]}").json()


def test_a_report_says_what_became_of_each_document(api: RunningApi) -> None:
    batch = create(api.client).json()
    failed = submit(
        api.client, batch_id=batch["id"], external_id="17", metadata='{"box": 3}'
    ).json()
    waiting = submit(api.client, batch_id=batch["id"], filename="b.pdf").json()
    submit(api.client)  # of no batch
    fail(api, failed["id"])

    report = api.client.get(batch["links"]["report"])
    lines = api.client.get(batch["links"]["report"], params={"format": "ndjson"})

    first, second = rows_of(report)
    assert report.headers["Content-Disposition"].startswith('attachment; filename="boxes.csv"')
    assert (first["document_id"], second["document_id"]) == (failed["id"], waiting["id"])
    assert (first["external_id"], first["state"], first["error_code"]) == (
        "17",
        "failed",
        "damaged",
    )
    assert float(first["seconds"]) >= 0
    assert (first["error_message"], second["error_message"]) == ("x", "")
    assert (second["state"], second["seconds"], second["result"]) == ("queued", "", "")
    records = [json.loads(line) for line in lines.text.splitlines()]
    assert [record["metadata"] for record in records] == [{"box": 3}, None]
    assert list(records[0])[:-1] == list(first)


def test_a_file_name_is_no_formula_of_a_spreadsheet(api: RunningApi) -> None:
    batch = create(api.client).json()
    submit(api.client, batch_id=batch["id"], filename="=1+1.pdf")

    (row,) = rows_of(api.client.get(batch["links"]["report"]))

    assert row["filename"] == "'=1+1.pdf"


def test_a_long_report_has_each_document_once(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_routes, "DOCUMENTS_PER_PART", 3)
    batch = create(api.client).json()
    with api.database.transaction() as session:
        ids = [add_document(session, batch_id=UUID(batch["id"])) for _ in range(9)]

    rows = rows_of(api.client.get(batch["links"]["report"]))

    assert [row["document_id"] for row in rows] == [str(each) for each in sorted(ids)]


def test_the_report_says_which_documents_were_not_read_themselves(api: RunningApi) -> None:
    batch = create(api.client).json()
    with api.database.transaction() as session:
        for cached_from in (None, new_id()):
            add_document(session, batch_id=UUID(batch["id"]), cached_from=cached_from)

    report = api.client.get(batch["links"]["report"])
    lines = api.client.get(batch["links"]["report"], params={"format": "ndjson"})

    assert [row["cached"] for row in rows_of(report)] == ["false", "true"]
    assert [json.loads(line)["cached"] for line in lines.text.splitlines()] == [False, True]


def test_the_report_of_an_empty_batch_is_its_head_alone(api: RunningApi) -> None:
    batch = create(api.client).json()

    answer = api.client.get(batch["links"]["report"])

    assert answer.text == ",".join(report_routes.COLUMNS) + "\r\n"


@pytest.mark.parametrize("address", ["report", "retry"])
def test_another_tenants_batch_is_not_found(
    api: RunningApi, stranger: httpx.Client, address: str
) -> None:
    batch = create(api.client).json()

    answer = stranger.request(
        "POST" if address == "retry" else "GET", f"{batch['links']['self']}/{address}"
    )

    assert answer.status_code == 404


def test_a_batch_is_retried_and_runs_again(api: RunningApi) -> None:
    batch = create(api.client).json()
    document = submit(api.client, batch_id=batch["id"]).json()
    fail(api, document["id"])
    before = api.client.get(batch["links"]["self"]).json()

    answer = api.client.post(f"{batch['links']['self']}/retry")

    view: dict[str, Any] = answer.json()
    assert before["state"] == "finished"
    assert (answer.status_code, view["state"], view["is_retrying"]) == (202, "running", False)
    assert view["documents"]["queued"] == 1


def test_a_batch_of_which_all_was_read_has_nothing_to_retry(api: RunningApi) -> None:
    batch = create(api.client).json()
    submit(api.client, batch_id=batch["id"])

    answer = api.client.post(f"{batch['links']['self']}/retry")

    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_retry")


def test_a_full_system_retries_no_batch(serve: Serve) -> None:
    with serve(settings={"api_max_open_pages_bulk": 1, "api_capacity_cache_s": 0}) as api:
        batch = create(api.client).json()
        document = submit(api.client, batch_id=batch["id"]).json()
        fail(api, document["id"])
        with api.database.transaction() as session:
            add_document(session, priority="bulk")

        answer = api.client.post(f"{batch['links']['self']}/retry")

    assert (answer.status_code, answer.json()["code"]) == (503, "system_full")
