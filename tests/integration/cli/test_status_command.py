import json
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import update
from typer.testing import CliRunner

from cli.api_views import DocumentStatus
from cli.errors import ApiError
from cli.main import app
from db.ids import new_id
from db.models import Document
from tests.support.api_server import ServedApi
from tests.support.rows import add_document

PDF = b"%PDF-1.7\n" + bytes(2_000)

runner = CliRunner()

pytestmark = pytest.mark.usefixtures("client_settings")


@pytest.fixture
def document(served_api: ServedApi, tmp_path: Path) -> DocumentStatus:
    file = tmp_path / "ledger.pdf"
    file.write_bytes(PDF)
    batch = served_api.client.create_batch("Ledgers")
    return served_api.client.submit(file, batch_id=batch.id)


def finish(api: ServedApi, document_id: UUID, state: str, error_code: str | None = None) -> None:
    with api.database.transaction() as session:
        session.execute(
            update(Document)
            .where(Document.id == document_id)
            .values(state=state, error_code=error_code, dispatch_after=None, page_count=1)
        )


def test_a_ready_api_is_ready(served_api: ServedApi) -> None:
    served_api.client.require_ready()


def test_a_file_is_submitted_into_its_batch(
    served_api: ServedApi, document: DocumentStatus
) -> None:
    assert document.state == "queued"
    assert document.filename == "ledger.pdf"
    assert list(served_api.client.documents()) == [document]


def test_a_refused_file_has_its_named_error(served_api: ServedApi, tmp_path: Path) -> None:
    (tmp_path / "empty.pdf").write_bytes(b"")
    batch = served_api.client.create_batch("Ledgers")

    with pytest.raises(ApiError) as refused:
        served_api.client.submit(tmp_path / "empty.pdf", batch_id=batch.id)

    assert refused.value.code == "empty"


@pytest.mark.usefixtures("document")
def test_status_lists_the_newest_documents() -> None:
    result = runner.invoke(app, ["status"])

    assert result.exit_code == 0
    assert "queued  -  ledger.pdf" in result.stdout
    assert "1 document: 1 queued" in result.stdout


@pytest.fixture
def two_documents(served_api: ServedApi, document: DocumentStatus, tmp_path: Path) -> UUID:
    """Adds a newer document to the batch of the first; returns the batch."""
    file = tmp_path / "newer.pdf"
    file.write_bytes(PDF)
    with served_api.database.transaction() as session:
        batch_id = session.get_one(Document, document.id).batch_id
    assert batch_id is not None
    served_api.client.submit(file, batch_id=batch_id)
    return batch_id


@pytest.mark.usefixtures("two_documents")
def test_status_says_that_there_are_older_documents_and_how_to_see_them() -> None:
    result = runner.invoke(app, ["status", "--limit", "1"])

    assert "newer.pdf" in result.stdout
    assert "ledger.pdf" not in result.stdout
    assert "1 document, newest first: 1 queued. There are older ones." in result.stdout
    assert "--all or --limit N" in result.stderr


@pytest.mark.usefixtures("two_documents")
def test_status_says_nothing_of_older_documents_where_there_are_none() -> None:
    result = runner.invoke(app, ["status", "--limit", "2"])

    assert "2 documents: 2 queued" in result.stdout
    assert result.stderr == ""


@pytest.mark.usefixtures("two_documents")
def test_status_lists_all_when_asked() -> None:
    result = runner.invoke(app, ["status", "--all"])

    assert "newer.pdf" in result.stdout
    assert "ledger.pdf" in result.stdout


def test_status_says_how_many_documents_a_batch_has(two_documents: UUID) -> None:
    result = runner.invoke(app, ["status", "--batch", str(two_documents), "--limit", "1"])

    assert "1 of 2 documents of Ledgers, newest first: 1 queued." in result.stdout


def test_json_ends_with_the_cursor_after_which_a_list_goes_on(two_documents: UUID) -> None:
    listed = ["status", "--json", "--batch", str(two_documents), "--limit", "1"]

    first, more = map(json.loads, runner.invoke(app, listed).stdout.splitlines())
    (second,) = map(
        json.loads,
        runner.invoke(app, [*listed, "--cursor", more["next_cursor"]]).stdout.splitlines(),
    )

    assert (more["listed"], more["total"]) == (1, 2)
    assert [first["filename"], second["filename"]] == ["newer.pdf", "ledger.pdf"]


@pytest.mark.usefixtures("two_documents")
def test_status_lists_documents_of_one_state(served_api: ServedApi) -> None:
    newest = next(iter(served_api.client.documents()))
    finish(served_api, newest.id, "failed", "damaged")

    result = runner.invoke(app, ["status", "--state", "failed"])

    assert "1 document: 1 failed" in result.stdout


def test_status_says_that_the_system_is_full(served_api: ServedApi) -> None:
    with served_api.database.transaction() as session:
        add_document(session, page_estimate=20_000_000, priority="bulk")

    result = runner.invoke(app, ["status"])

    assert result.exit_code == 0
    assert "bulk documents are refused" in result.stderr
    assert "20,000,000 pages wait" in result.stderr


def test_an_unknown_batch_is_an_error_with_a_remedy() -> None:
    result = runner.invoke(app, ["status", "--batch", str(new_id())])

    assert result.exit_code == 1
    assert "no batch has the id" in result.stderr


def test_an_id_beside_options_that_list_several_exits_with_2() -> None:
    result = runner.invoke(app, ["status", str(new_id()), "--all"])

    assert result.exit_code == 2
    assert "--batch ID" in result.stderr


def test_status_of_a_document_is_json_when_asked(document: DocumentStatus) -> None:
    result = runner.invoke(app, ["status", str(document.id), "--json"])

    record = json.loads(result.stdout)
    assert (record["id"], record["state"]) == (str(document.id), "queued")


def test_status_of_a_batch_counts_its_documents(
    served_api: ServedApi, document: DocumentStatus, tmp_path: Path
) -> None:
    (tmp_path / "second.pdf").write_bytes(PDF)
    batch = served_api.client.create_batch("Maps")
    second = served_api.client.submit(tmp_path / "second.pdf", batch_id=batch.id)
    finish(served_api, second.id, "failed", "damaged")

    result = runner.invoke(app, ["status", str(batch.id)])

    assert "Maps: finished; 1 failed" in result.stdout
    assert "second.pdf" in result.stdout
    assert "damaged: " in result.stdout
    assert document.filename not in result.stdout


def test_a_watch_ends_well_when_all_succeeded(
    served_api: ServedApi, document: DocumentStatus
) -> None:
    finish(served_api, document.id, "succeeded")

    result = runner.invoke(app, ["status", str(document.id), "--watch"])

    assert result.exit_code == 0
    assert "succeeded" in result.stdout


def test_a_watch_exits_with_1_when_a_document_failed(
    served_api: ServedApi, document: DocumentStatus
) -> None:
    finish(served_api, document.id, "failed", "damaged")

    result = runner.invoke(app, ["status", "--watch", "--json"])

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error_code"] == "damaged"


def test_an_unknown_id_is_an_error_with_a_remedy() -> None:
    result = runner.invoke(app, ["status", str(new_id())])

    assert result.exit_code == 1
    assert "no document and no batch" in result.stderr


def test_a_wrong_key_is_told_how_to_give_the_right_one() -> None:
    result = runner.invoke(app, ["status", "--api-key", "pf_0_0"])

    assert result.exit_code == 1
    assert "does not know the key that was given" in result.stderr
    assert "PAGEFLEET_CLIENT_API_KEY" in result.stderr
    assert "Authorization" not in result.stderr


def test_a_wrong_key_of_the_environment_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_CLIENT_API_KEY", "pf_0_0")

    result = runner.invoke(app, ["status"])

    assert "does not know the key in PAGEFLEET_CLIENT_API_KEY" in result.stderr


@pytest.mark.usefixtures("document")
def test_batches_are_listed_newest_first(served_api: ServedApi) -> None:
    ids = [served_api.client.create_batch(name).id for name in ("Maps", "Letters")]

    listed = runner.invoke(app, ["status", "--batches", "--limit", "2"])
    as_json = runner.invoke(app, ["status", "--batches", "--json"])

    assert listed.stdout.splitlines() == [
        f"{ids[1]}  Letters: open; no documents",
        f"{ids[0]}  Maps: open; no documents",
    ]
    lines = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert [(line["name"], line["documents"]) for line in lines] == [
        ("Letters", 0),
        ("Maps", 0),
        ("Ledgers", 1),
    ]


def test_batches_are_not_listed_beside_documents() -> None:
    assert runner.invoke(app, ["status", "--batches", "--state", "failed"]).exit_code == 2
