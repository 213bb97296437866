"""``pagefleet ingest s3://…`` on a real API and a real store."""

import csv
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from db import documents
from db.models import Batch, Document
from tests.support.api_server import ServedApi, open_store
from tests.support.listing import ODD_KEYS, allowed_in, listing_in_thread, put_all, rules_for
from tests.support.processes import wait_until
from tests.support.rows import claim_split
from tests.support.services import S3Bucket

runner = CliRunner()

pytestmark = pytest.mark.usefixtures("client_settings", "ingest_work_dir", "_lister")


@pytest.fixture
def api_settings(scans: S3Bucket) -> dict[str, Any]:
    return {"api_sources": (allowed_in(scans),)}


@pytest.fixture
def _lister(served_api: ServedApi, s3_bucket: S3Bucket, scans: S3Bucket) -> Iterator[None]:
    store = open_store(s3_bucket)
    with listing_in_thread(served_api.database, store, rules_for(scans, lease_s=60)):
        yield
    store.close()


def ingest(source: str, *options: str, batch: str = "boxes", exit_code: int = 0) -> str:
    result = runner.invoke(app, ["ingest", source, "--batch", batch, *options])
    assert result.exit_code == exit_code, result.output
    return result.output


def last_json(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text.splitlines()[-1])
    return parsed


def report() -> list[dict[str, Any]]:
    lines = Path("ingest-report.ndjson").read_text("utf-8").splitlines()
    with Path("ingest-report.csv").open(newline="", encoding="utf-8") as file:
        assert [row["document_id"] for row in csv.DictReader(file)] == [
            json.loads(line)["document_id"] for line in lines
        ]
    return [json.loads(line) for line in lines]


def batches_of(api: ServedApi) -> list[Batch]:
    with api.database.transaction() as session:
        return session.query(Batch).all()


def documents_of(api: ServedApi) -> list[Document]:
    with api.database.transaction() as session:
        return session.query(Document).all()


def test_what_lies_under_a_prefix_is_one_batch_and_in_the_report(
    served_api: ServedApi, scans: S3Bucket
) -> None:
    put_all(scans, ODD_KEYS)

    told = ingest(f"s3://{scans.name}/in/", "--options", '{"dpi": 300}')

    (batch,) = batches_of(served_api)
    assert (batch.name, batch.options) == ("boxes", {"dpi": 300})
    assert f"{len(ODD_KEYS)} objects" in told
    assert sorted(each["source"] for each in report()) == sorted(
        f"s3://{scans.name}/{key}" for key in ODD_KEYS
    )


def test_the_same_name_goes_on_with_the_same_batch(served_api: ServedApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf"])
    first = last_json(ingest(f"s3://{scans.name}/in/", "--json"))

    again = last_json(ingest(f"s3://{scans.name}/in/", "--json"))
    ingest(f"s3://{scans.name}/in/", batch="other boxes")

    assert again == first
    assert (first["found"], first["by_state"], first["failures"]) == (1, {"queued": 1}, 0)
    assert len(batches_of(served_api)) == 2
    assert len(documents_of(served_api)) == 2


def test_other_options_are_another_batch(scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf"])
    ingest(f"s3://{scans.name}/in/")

    told = ingest(f"s3://{scans.name}/in/", "--options", '{"dpi": 100}', exit_code=2)

    assert "other options" in told


def test_a_manifest_in_a_bucket_is_a_batch(served_api: ServedApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.pdf", "in/b.pdf"])
    text = f"path,id\ns3://{scans.name}/in/b.pdf,box-2\n"
    put_all(scans, ["in/m.csv"], body=lambda _: text.encode())

    ingest(f"s3://{scans.name}/in/m.csv")

    assert [each.external_id for each in documents_of(served_api)] == ["box-2"]


def test_a_dry_run_counts_and_creates_nothing(served_api: ServedApi, scans: S3Bucket) -> None:
    put_all(scans, ["in/a.png", "in/b.pdf"])

    told = last_json(ingest(f"s3://{scans.name}/in/", "--dry-run", "--json"))

    assert (told["files"], told["pages"], told["estimated_pages"]) == (2, 1, 1)
    assert batches_of(served_api) == []
    assert not Path("ingest-report.csv").exists()


def test_a_document_that_failed_is_named_and_is_a_failure(
    served_api: ServedApi, scans: S3Bucket
) -> None:
    put_all(scans, ["in/a.pdf"])

    def fail_when_found() -> None:
        wait_until(lambda: len(documents_of(served_api)) == 1)
        with served_api.database.transaction() as session:
            (document,) = session.query(Document).all()
            claim = claim_split(session, document.id)
            documents.fail(session, claim, code="damaged", detail="x")

    failing = threading.Thread(target=fail_when_found)
    failing.start()
    told = ingest(f"s3://{scans.name}/in/", "--wait", exit_code=1)
    failing.join()

    assert f"s3://{scans.name}/in/a.pdf: failed: damaged" in told


def test_a_listing_that_fails_is_a_failure_with_a_remedy(
    served_api: ServedApi, scans: S3Bucket
) -> None:
    put_all(scans, ["in/m.csv"], body=lambda _: b"path\nnothing\n")

    told = ingest(f"s3://{scans.name}/in/m.csv", exit_code=1)

    assert "Line 2" in told
    assert "pagefleet retry" in told
    assert documents_of(served_api) == []


@pytest.mark.parametrize("source", ["s3://", "s3:///in/"])
def test_an_address_without_a_bucket_is_none(source: str) -> None:
    assert "no address of a bucket" in ingest(source, exit_code=2)


def test_a_bucket_that_is_not_allowed_is_named(served_api: ServedApi, s3_bucket: S3Bucket) -> None:
    told = ingest(f"s3://{s3_bucket.name}/in/", exit_code=1)

    assert "PAGEFLEET_API_SOURCES" in told
    assert batches_of(served_api) == []
