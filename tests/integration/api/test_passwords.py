"""A password goes in with its file, and comes out nowhere."""

import httpx
import pytest

from db import document_sources
from tests.support.api_server import RunningApi, documents_in
from tests.support.direct_uploads import announce, complete, sent

PDF = b"%PDF-1.7\n" + bytes(2_000)
PASSWORD = "kestrel über der Lampe"  # noqa: S105 - made up


def submit(client: httpx.Client, password: str, **headers: str) -> httpx.Response:
    return client.post(
        "/v1/documents",
        files={"file": ("a.pdf", PDF)},
        data={"password": password},
        headers=headers,
    )


def kept(api: RunningApi) -> list[str | None]:
    with api.database.transaction() as session:
        return [
            document_sources.find_password(session, row.id) for row in documents_in(api.database)
        ]


def test_a_password_is_kept_for_the_split_and_shown_by_nothing(api: RunningApi) -> None:
    answer = submit(api.client, PASSWORD)

    address = answer.headers["Location"]
    shown = [answer, api.client.get(address), api.client.get("/v1/documents")]
    assert answer.status_code == 202
    assert kept(api) == [PASSWORD]
    assert all("kestrel" not in each.text for each in shown)
    assert all("password" not in each.text for each in shown)


def test_a_request_that_is_sent_again_is_the_same_whatever_its_password(api: RunningApi) -> None:
    first = submit(api.client, PASSWORD, **{"Idempotency-Key": "a"})
    second = submit(api.client, "another", **{"Idempotency-Key": "a"})

    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.json()["id"] == first.json()["id"]
    assert kept(api) == [PASSWORD]


def test_a_password_from_a_file_may_end_its_line(api: RunningApi) -> None:
    submit(api.client, f"{PASSWORD}\n")

    assert kept(api) == [PASSWORD]


def test_an_empty_password_is_none(api: RunningApi) -> None:
    assert submit(api.client, "").status_code == 202

    assert kept(api) == [None]


@pytest.mark.parametrize("password", ["x" * 128, "kestrel\0", "\r\n"])
def test_a_password_that_no_pdf_has_is_refused_and_not_repeated(
    api: RunningApi, password: str
) -> None:
    answer = submit(api.client, password)

    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["password"]
    assert "kestrel" not in answer.text
    assert documents_in(api.database) == []


def test_a_file_that_went_straight_to_storage_gets_its_password_when_it_is_complete(
    api: RunningApi,
) -> None:
    upload = sent(api.client, PDF)

    answer = complete(api.client, upload, password=PASSWORD)

    assert answer.status_code == 202
    assert "kestrel" not in answer.text
    assert kept(api) == [PASSWORD]


def test_a_password_is_not_kept_with_an_upload(api: RunningApi) -> None:
    answer = announce(api.client, PDF, password=PASSWORD)

    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["password"]
    assert "kestrel" not in answer.text
