"""``pagefleet export`` on a real API."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from cli.main import app
from db.models import Document, Export
from db.states import DocumentState
from storage import keys
from storage.s3 import S3ObjectStore
from tests.integration.cli.conftest import TENANT
from tests.support.api_server import ServedApi, open_store
from tests.support.export_checks import alto_words, check_alto
from tests.support.results import page_of, result_of, stored
from tests.support.rows import add_document
from tests.support.services import S3Bucket
from workers.export_document import export_document
from workers.work_rules import WorkRules

runner = CliRunner()

pytestmark = pytest.mark.usefixtures("client_settings")


@pytest.fixture
def store(s3_bucket: S3Bucket) -> Iterator[S3ObjectStore]:
    opened = open_store(s3_bucket)
    yield opened
    opened.close()


@pytest.fixture
def batch_id(served_api: ServedApi) -> UUID:
    return served_api.client.create_batch("Ledgers").id


def add_read(
    served_api: ServedApi, store: S3ObjectStore, batch_id: UUID, *, count: int
) -> list[UUID]:
    """Add documents of two pages that were read, oldest first."""
    with served_api.database.transaction() as session:
        added = [
            add_document(session, tenant=TENANT, batch_id=batch_id, page_count=2)
            for _ in range(count)
        ]
        for document_id in added:
            document = session.get_one(Document, document_id)
            document.state = DocumentState.SUCCEEDED
            document.dispatch_after = None
            document.result_key = keys.result_key(document_id, 1)
            result = result_of(page_of(["one"]), page_of(["two"], page_index=1))
            store.put(document.result_key, stored(result), media_type="application/json")
    return added


@pytest.fixture
def documents(served_api: ServedApi, store: S3ObjectStore, batch_id: UUID) -> list[UUID]:
    """Two documents of one name that were read, and one that was not."""
    with served_api.database.transaction() as session:
        added = [
            add_document(session, tenant=TENANT, filename=name, batch_id=batch_id, page_count=2)
            for name in ("../scan.pdf", "../scan.pdf", "open.pdf")
        ]
        for number, document_id in enumerate(added[:2]):
            document = session.get_one(Document, document_id)
            document.state = DocumentState.SUCCEEDED
            document.dispatch_after = None
            document.result_key = keys.result_key(document_id, 1)
            result = result_of(page_of([f"page of {number}"]), page_of(["two"], page_index=1))
            store.put(document.result_key, stored(result), media_type="application/json")
    return added


def run(*arguments: object) -> Any:
    return runner.invoke(app, ["export", *map(str, arguments)])


def test_the_results_of_a_batch_are_written_under_safe_names(
    batch_id: UUID, documents: list[UUID], tmp_path: Path
) -> None:
    done = run(batch_id, "--format", "markdown", "-o", tmp_path / "out", "--json")

    lines = {line["document_id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert done.exit_code == 1
    assert lines[str(documents[2])]["error"]["code"] == "not_ready"
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == sorted(f"scan.{each}.md" for each in documents[:2])
    assert {lines[str(each)]["state"] for each in documents[:2]} == {"written"}
    texts = [(tmp_path / "out" / f"scan.{each}.md").read_text() for each in documents[:2]]
    assert ["page of 0" in texts[0], "page of 1" in texts[1]] == [True, True]


def test_a_document_whose_result_is_gone_costs_the_others_nothing(
    served_api: ServedApi, store: S3ObjectStore, batch_id: UUID, tmp_path: Path
) -> None:
    first, middle, last = add_read(served_api, store, batch_id, count=3)
    store.delete([keys.result_key(middle, 1)])

    done = run(batch_id, "-o", tmp_path, "--json")

    lines = {line["document_id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert done.exit_code == 1
    assert lines[str(middle)]["error"]["code"] == "internal"
    assert {lines[str(each)]["state"] for each in (first, last)} == {"written"}
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_document_whose_answer_breaks_off_costs_the_others_nothing(
    served_api: ServedApi, store: S3ObjectStore, batch_id: UUID, tmp_path: Path
) -> None:
    first, middle, last = add_read(served_api, store, batch_id, count=3)
    key = keys.result_key(middle, 1)
    store.put(key, store.get(key)[:-20], media_type="application/json")

    done = run(batch_id, "--format", "markdown", "-o", tmp_path, "--json")

    lines = {line["document_id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert done.exit_code == 1
    assert lines[str(middle)]["error"]["code"] == "broken_off"
    assert {lines[str(each)]["state"] for each in (first, last)} == {"written"}


def test_a_document_that_failed_is_named_with_its_own_error(
    served_api: ServedApi, batch_id: UUID, tmp_path: Path
) -> None:
    with served_api.database.transaction() as session:
        document_id = add_document(session, tenant=TENANT, batch_id=batch_id)
        document = session.get_one(Document, document_id)
        document.state, document.error_code = DocumentState.FAILED, "encrypted"
        document.dispatch_after = None

    done = run(batch_id, "-o", tmp_path)

    assert done.exit_code == 1
    assert f"({document_id}): encrypted: The file is protected by a password" in done.stderr
    assert "1 document: 1 failed" in done.stderr


def test_a_second_run_fetches_what_the_first_has_not(
    batch_id: UUID, documents: list[UUID], tmp_path: Path
) -> None:
    run(documents[0], "-o", tmp_path)
    (written,) = tmp_path.glob("*.json")
    written.write_text("kept")

    done = run(batch_id, "-o", tmp_path)

    assert written.read_text() == "kept"
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert "3 documents: 1 written, 1 skipped, 1 failed" in done.stderr
    assert run(documents[0], "-o", tmp_path, "--overwrite").exit_code == 0
    assert json.loads(written.read_text())["schema"] == "pagefleet/1"


def test_a_format_that_a_worker_makes_is_waited_for(
    served_api: ServedApi,
    store: S3ObjectStore,
    documents: list[UUID],
    tmp_path: Path,
) -> None:
    stop = threading.Event()

    def work() -> None:
        rules = WorkRules("test", 60, 4, 1, 60, 100)
        while not stop.wait(0.1):
            with served_api.database.transaction() as session:
                ids = list(session.scalars(select(Export.id)))
            for export_id in ids:
                export_document(
                    export_id,
                    transaction=served_api.database.transaction,
                    store=store,
                    source_file=cast("Any", None),
                    renderer=cast("Any", None),
                    rules=rules,
                )

    worker = threading.Thread(target=work)
    worker.start()
    try:
        done = run(documents[0], "--format", "alto", "--pages", "2", "-o", tmp_path)
    finally:
        stop.set()
        worker.join()

    assert done.exit_code == 0, done.stderr
    written = (tmp_path / f"scan.{documents[0]}.pages-2.alto.xml").read_text("utf-8")
    assert alto_words(check_alto(written)) == ["two"]


def test_what_names_no_format_or_pages_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    some_id = "019ab8e2-6f3c-7c11-9d5e-0a1b2c3d4e5f"

    assert run(some_id, "--format", "docx").exit_code == 2
    assert run(some_id, "--pages", "3-1").exit_code == 2
    assert run("x", "-o", tmp_path).exit_code == 2
    assert run(some_id, "-o", tmp_path).exit_code == 1
    assert list(tmp_path.iterdir()) == []
