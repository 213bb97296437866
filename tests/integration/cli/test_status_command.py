import json
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import update
from typer.testing import CliRunner

from cli.client import DocumentStatus
from cli.errors import ApiError
from cli.main import app
from db.ids import new_id
from db.models import Document
from tests.integration.cli.conftest import ServedApi

PDF = b"%PDF-1.7\n" + bytes(2_000)

runner = CliRunner()


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, served_api: ServedApi, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGEFLEET_HOME", str(tmp_path))
    monkeypatch.setenv("PAGEFLEET_CLIENT_API_URL", served_api.url)
    monkeypatch.setenv("PAGEFLEET_CLIENT_API_KEY", served_api.key)


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
    assert "1 documents: 1 queued" in result.stdout


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
    assert "PAGEFLEET_CLIENT_API_KEY" in result.stderr
