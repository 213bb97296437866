"""``cancel``, ``retry`` and ``delete`` on a real API."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import func, update
from typer.testing import CliRunner

from cli.api_views import DocumentStatus
from cli.main import app
from db.ids import new_id
from db.models import Document
from tests.support.api_server import ServedApi

PDF = b"%PDF-1.7\n" + bytes(2_000)

runner = CliRunner()

pytestmark = pytest.mark.usefixtures("client_settings")


@pytest.fixture
def batch_id(served_api: ServedApi) -> UUID:
    return served_api.client.create_batch("Ledgers").id


@pytest.fixture
def documents(served_api: ServedApi, batch_id: UUID, tmp_path: Path) -> list[DocumentStatus]:
    """Three documents of the batch: queued, failed and succeeded."""
    file = tmp_path / "ledger.pdf"
    file.write_bytes(PDF)
    sent = [served_api.client.submit(file, batch_id=batch_id) for _ in range(3)]
    with served_api.database.transaction() as session:
        for document, state in zip(sent[1:], ("failed", "succeeded"), strict=True):
            session.execute(
                update(Document)
                .where(Document.id == document.id)
                .values(state=state, dispatch_after=None, finished_at=func.now())
            )
    return sent


def states(api: ServedApi) -> list[str]:
    return sorted(document.state for document in api.client.documents())


def test_documents_are_cancelled_and_one_that_has_ended_is_told(
    served_api: ServedApi, documents: list[DocumentStatus]
) -> None:
    queued, _, succeeded = documents

    result = runner.invoke(app, ["cancel", str(queued.id), str(succeeded.id)])

    assert result.exit_code == 1
    assert "cancelled  -  ledger.pdf" in result.stdout
    assert "1 document cancelled" in result.stdout
    assert f"{succeeded.id}: The document has ended already" in result.stderr
    assert states(served_api) == ["cancelled", "failed", "succeeded"]


@pytest.mark.usefixtures("documents")
def test_a_batch_is_cancelled(served_api: ServedApi, batch_id: UUID) -> None:
    result = runner.invoke(app, ["cancel", "--batch", str(batch_id)])

    assert (result.exit_code, result.stdout) == (0, "Ledgers: cancelled; 0 documents are ending\n")
    assert states(served_api) == ["cancelled", "failed", "succeeded"]


def test_what_failed_in_a_batch_is_retried(
    served_api: ServedApi, documents: list[DocumentStatus], batch_id: UUID
) -> None:
    runner.invoke(app, ["cancel", str(documents[0].id)])

    result = runner.invoke(app, ["retry", "--batch", str(batch_id), "--failed", "--json"])

    (line,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert (line["id"], line["state"], line["is_retrying"]) == (str(batch_id), "running", False)
    assert states(served_api) == ["cancelled", "queued", "succeeded"]


@pytest.mark.parametrize(("code", "is_told"), [("encrypted", True), ("worker_lost", False)])
def test_who_retries_what_cannot_end_otherwise_is_told(
    served_api: ServedApi,
    documents: list[DocumentStatus],
    batch_id: UUID,
    code: str,
    is_told: bool,  # noqa: FBT001 - a case of the test
) -> None:
    with served_api.database.transaction() as session:
        session.execute(
            update(Document).where(Document.id == documents[1].id).values(error_code=code)
        )

    result = runner.invoke(app, ["retry", str(batch_id), "--failed"])

    assert result.exit_code == 0
    assert (f"for its files ({code}), and will again" in result.stderr) == is_told


def test_one_document_is_retried(served_api: ServedApi, documents: list[DocumentStatus]) -> None:
    result = runner.invoke(app, ["retry", str(documents[1].id)])

    assert "1 document sent again" in result.stdout
    assert states(served_api) == ["queued", "queued", "succeeded"]


@pytest.mark.usefixtures("documents")
def test_all_that_was_not_read_in_a_batch_is_retried(
    served_api: ServedApi, documents: list[DocumentStatus], batch_id: UUID
) -> None:
    runner.invoke(app, ["cancel", str(documents[0].id)])

    result = runner.invoke(app, ["retry", str(batch_id)])

    assert result.stdout == "Ledgers: running; 2 of 3 documents are open\n"
    assert states(served_api) == ["queued", "queued", "succeeded"]


def test_a_document_is_deleted_and_is_not_there_a_second_time(
    served_api: ServedApi, documents: list[DocumentStatus]
) -> None:
    wanted = str(documents[2].id)

    first, again = (runner.invoke(app, ["delete", wanted, "--json"]) for _ in range(2))

    assert (first.exit_code, again.exit_code) == (0, 1)
    assert json.loads(first.stdout) == {"id": wanted, "done": True, "refused": None}
    assert json.loads(again.stdout) == {"id": wanted, "done": False, "refused": "not_found"}
    assert states(served_api) == ["failed", "queued"]


@pytest.mark.usefixtures("documents")
def test_a_batchs_documents_are_deleted_only_when_that_is_meant(
    served_api: ServedApi, batch_id: UUID
) -> None:
    asked = runner.invoke(app, ["delete", "--batch", str(batch_id)], input="n\n")
    left = len(states(served_api))

    sure = runner.invoke(app, ["delete", "--batch", str(batch_id), "--yes"])

    assert "Delete 3 documents for good?" in asked.stderr
    assert (asked.exit_code, left) == (1, 3)
    assert (sure.exit_code, states(served_api)) == (0, [])


def test_a_batch_that_is_unknown_is_an_error() -> None:
    result = runner.invoke(app, ["retry", "--batch", str(new_id())])

    assert result.exit_code == 1
    assert "error:" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["cancel"],
        ["cancel", str(new_id()), "--batch", str(new_id())],
        ["retry", str(new_id()), "--failed"],
        ["delete", "no-id"],
    ],
)
def test_a_command_line_that_does_not_say_which_are_meant_is_refused(arguments: list[str]) -> None:
    result = runner.invoke(app, arguments)

    assert result.exit_code == 2
