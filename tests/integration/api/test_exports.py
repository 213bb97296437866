"""Forms of a result over HTTP: made while they are sent, or by a worker and answered until then."""

import json
from typing import Any, cast
from uuid import UUID

import pytest
from sqlalchemy import select, text, update

from db.exports import MOST_OF_RESULT, MOST_OPEN_OF_TENANT
from db.models import Document, Export
from db.states import DocumentState, ExportState
from storage import keys
from tests.support.api_server import RunningApi, Serve, client_of, make_key
from tests.support.export_checks import check_alto, check_hocr
from tests.support.results import FAILED, page_of, result_of, stored
from tests.support.rows import add_document
from workers.export_document import export_document
from workers.work_rules import WorkRules

PAGES = [page_of(["one <b>"]), FAILED, page_of(["three"], page_index=2)]
RULES = WorkRules("test", 60, 4, 1, 60, 100)


@pytest.fixture
def document_id(api: RunningApi) -> UUID:
    with api.database.transaction() as session:
        added = add_document(
            session, state=DocumentState.PARTLY_SUCCEEDED, page_count=3, filename="scan.pdf"
        )
        document = session.get_one(Document, added)
        document.dispatch_after = None
        document.result_key = keys.result_key(added, 1)
    api.store.put(keys.result_key(added, 1), stored(result_of(*PAGES)), media_type="")
    return added


def ask(api: RunningApi, document_id: UUID, **parameters: str) -> Any:
    headers = {"If-None-Match": parameters.pop("etag")} if "etag" in parameters else {}
    return api.client.get(f"/v1/documents/{document_id}/result", params=parameters, headers=headers)


def exports_of(api: RunningApi) -> list[Export]:
    with api.database.transaction() as session:
        return list(session.scalars(select(Export)))


def make(api: RunningApi) -> None:
    """Do what a worker does with all exports; text needs no source."""
    for export in exports_of(api):
        export_document(
            export.id,
            transaction=api.database.transaction,
            store=api.store,
            source_file=cast("Any", None),
            renderer=cast("Any", None),
            rules=RULES,
        )


def test_markdown_is_made_while_it_is_sent(api: RunningApi, document_id: UUID) -> None:
    response = ask(api, document_id, format="markdown")

    assert response.status_code == 200
    assert response.text.startswith("# scan.pdf\n\n## Page 1\n\none &lt;b&gt;\n\n## Page 2\n\n> ")
    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert 'filename="scan.md"' in response.headers["Content-Disposition"]
    assert (
        ask(api, document_id, format="markdown", etag=response.headers["ETag"]).status_code == 304
    )
    assert exports_of(api) == []


def test_some_pages_are_sent_as_text_and_json(api: RunningApi, document_id: UUID) -> None:
    text = ask(api, document_id, format="text", pages="2-3")
    whole = ask(api, document_id, pages="3")

    assert text.text == "\fthree"
    assert [page["page_number"] for page in json.loads(whole.content)["pages"]] == [3]
    assert 'filename="scan.pages-3-3.json"' in whole.headers["Content-Disposition"]
    assert text.headers["ETag"] != whole.headers["ETag"]


@pytest.mark.parametrize("parameters", [{"format": "text", "pages": "3"}, {"format": "markdown"}])
def test_of_a_large_result_a_worker_makes_what_is_not_stored(
    api: RunningApi, document_id: UUID, parameters: dict[str, str]
) -> None:
    with api.database.transaction() as session:
        session.get_one(Document, document_id).result_size_bytes = 300 * 2**20

    first = ask(api, document_id, **parameters)
    make(api)
    second = ask(api, document_id, **parameters)

    assert (first.status_code, second.status_code) == (202, 200)
    assert "three" in second.text


def test_of_a_large_result_what_is_stored_is_sent_at_once(
    api: RunningApi, document_id: UUID
) -> None:
    with api.database.transaction() as session:
        session.get_one(Document, document_id).result_size_bytes = 300 * 2**20

    assert len(ask(api, document_id).json()["pages"]) == 3
    assert exports_of(api) == []


@pytest.mark.parametrize("pages", ["4", "2-4", "0", "3-2", "x", "1,2"])
def test_pages_that_the_document_does_not_have_are_refused(
    api: RunningApi, document_id: UUID, pages: str
) -> None:
    response = ask(api, document_id, format="hocr", pages=pages)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert exports_of(api) == []


def test_a_format_is_accepted_made_and_then_sent(api: RunningApi, document_id: UUID) -> None:
    first = ask(api, document_id, format="alto", pages="1-2")
    again = ask(api, document_id, format="alto", pages="1-2")

    assert (first.status_code, again.status_code) == (202, 202)
    assert int(first.headers["Retry-After"]) > 0
    assert first.json() == {"format": "alto", "pages": "1-2", "state": "queued"}
    (row,) = exports_of(api)
    assert row.dispatch_after is not None

    make(api)
    response = ask(api, document_id, format="alto", pages="1-2")

    assert response.status_code == 200
    assert len(check_alto(response.text).xpath("//*[local-name()='Page']")) == 2
    assert response.headers["Content-Length"] == str(len(response.content))
    assert 'filename="scan.pages-1-2.alto.xml"' in response.headers["Content-Disposition"]
    etag = response.headers["ETag"]
    assert ask(api, document_id, format="alto", pages="1-2", etag=etag).status_code == 304


def test_hocr_comes_as_a_file_that_no_browser_runs(api: RunningApi, document_id: UUID) -> None:
    ask(api, document_id, format="hocr")
    make(api)

    response = ask(api, document_id, format="hocr")

    check_hocr(response.text)
    assert response.headers["Content-Type"] == "text/vnd.hocr+html; charset=utf-8"
    assert response.headers["Content-Disposition"].startswith("attachment; ")
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_format_that_could_not_be_made_says_why(api: RunningApi, document_id: UUID) -> None:
    ask(api, document_id, format="pdf")
    with api.database.transaction() as session:
        session.execute(
            update(Export).values(
                state=ExportState.FAILED, error_code="encrypted", dispatch_after=None
            )
        )

    response = ask(api, document_id, format="pdf")

    problem = response.json()
    assert (response.status_code, problem["code"]) == (409, "export_failed")
    assert problem["export_error"]["code"] == "encrypted"
    assert "password" in problem["export_error"]["message"]


def test_a_new_result_has_exports_of_its_own(api: RunningApi, document_id: UUID) -> None:
    ask(api, document_id, format="csv")
    make(api)
    with api.database.transaction() as session:
        session.get_one(Document, document_id).result_key = keys.result_key(document_id, 2)

    assert ask(api, document_id, format="csv").status_code == 202


def add_exports(api: RunningApi, document_id: UUID, count: int, *, is_open: bool) -> None:
    """Add so many exports of choices of pages that nobody asks for in these tests."""
    with api.database.transaction() as session:
        session.execute(
            text("""
                INSERT INTO exports (id, document_id, generation, format, pages, tenant, lane,
                  priority, state, attempt, excused, deliveries, dispatch_after)
                SELECT gen_random_uuid(), id, 1, 'hocr', '9-' || number, tenant, lane, priority,
                  CASE WHEN :is_open THEN 'queued' ELSE 'succeeded' END, 0, 0, 1,
                  CASE WHEN :is_open THEN now() + interval '1 h' END
                FROM documents, generate_series(1, :count) AS number WHERE documents.id = :id
            """),
            {"id": document_id, "count": count, "is_open": is_open},
        )


def test_a_result_has_so_many_exports_and_no_more(api: RunningApi, document_id: UUID) -> None:
    add_exports(api, document_id, MOST_OF_RESULT - 1, is_open=False)

    last = ask(api, document_id, format="csv", pages="1")
    one_more = ask(api, document_id, format="csv", pages="2")

    assert (last.status_code, one_more.status_code) == (202, 409)
    assert one_more.json()["code"] == "too_many_exports"
    assert ask(api, document_id, format="csv", pages="1").status_code == 202


def test_a_tenant_has_so_many_open_exports_and_others_have_theirs(
    api: RunningApi, document_id: UUID
) -> None:
    with api.database.transaction() as session:
        other = add_document(session, state=DocumentState.SUCCEEDED, tenant="other")
        mine = add_document(session, state=DocumentState.SUCCEEDED)
        for each in (other, mine):
            session.get_one(Document, each).result_key = keys.result_key(each, 1)
    add_exports(api, mine, MOST_OPEN_OF_TENANT - 1, is_open=True)

    last = ask(api, document_id, format="csv")
    one_more = ask(api, document_id, format="alto")
    with client_of(api.url, make_key(api.database, "other")) as client:
        of_other = client.get(f"/v1/documents/{other}/result", params={"format": "csv"})

    assert (last.status_code, one_more.status_code, of_other.status_code) == (202, 429, 202)
    assert one_more.json()["code"] == "too_many_open_exports"
    assert int(one_more.headers["Retry-After"]) > 0
    assert ask(api, document_id, format="csv").status_code == 202
    with api.database.transaction() as session:
        session.execute(text("DELETE FROM exports WHERE pages = '9-1'"))
    assert ask(api, document_id, format="alto").status_code == 202


def test_of_many_exports_the_first_are_sent_at_once_and_the_rest_in_turn(
    serve: Serve, document_id: UUID
) -> None:
    sent: list[UUID] = []

    def send(export_id: UUID, *_: object) -> bool:
        sent.append(export_id)
        return True

    with serve(send_export=send) as api:
        add_exports(api, document_id, 15, is_open=True)
        ask(api, document_id, format="csv")
        ask(api, document_id, format="alto")

    due = {row.format: row.deliveries for row in exports_of(api) if row.format != "hocr"}
    assert due == {"csv": 1, "alto": 0}
    assert len(sent) == 1


def test_nobody_exports_the_document_of_another_tenant(api: RunningApi, document_id: UUID) -> None:
    with api.database.transaction() as session:
        session.get_one(Document, document_id).tenant = "other"

    response = ask(api, document_id, format="pdf")

    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert exports_of(api) == []
