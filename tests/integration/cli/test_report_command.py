"""``pagefleet report`` on a real API."""

import csv
import json
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner

from cli.main import app
from db.ids import new_id
from tests.support.api_server import ServedApi

runner = CliRunner()

pytestmark = pytest.mark.usefixtures("client_settings")


@pytest.fixture
def batch_id(served_api: ServedApi, tmp_path: Path) -> UUID:
    batch_id = served_api.client.create_batch("Ledgers").id
    for name in ("a.pdf", "-b.pdf"):
        file = tmp_path / name
        file.write_bytes(b"%PDF-1.7")
        served_api.client.submit(file, batch_id=batch_id)
    return batch_id


def test_a_report_goes_to_a_file(batch_id: UUID, tmp_path: Path) -> None:
    target = tmp_path / "report.csv"

    result = runner.invoke(app, ["report", str(batch_id), "-o", str(target)])

    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert result.exit_code == 0
    assert [row["filename"] for row in rows] == ["a.pdf", "'-b.pdf"]


def test_a_report_goes_to_standard_output(batch_id: UUID) -> None:
    result = runner.invoke(app, ["report", str(batch_id), "--format", "ndjson"])

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["filename"], line["state"]) for line in lines] == [
        ("a.pdf", "queued"),
        ("-b.pdf", "queued"),
    ]


def test_an_unknown_batch_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    target = tmp_path / "report.csv"

    result = runner.invoke(app, ["report", str(new_id()), "-o", str(target)])

    assert result.exit_code == 1
    assert "error:" in result.stderr
    assert list(tmp_path.iterdir()) == []
