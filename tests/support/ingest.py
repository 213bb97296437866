"""``pagefleet ingest`` as a test calls it, and what it leaves."""

import csv
import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.main import app
from db.models import Document
from tests.support.api_server import ServedApi

runner = CliRunner()


def pdf(text: object) -> bytes:
    return b"%PDF-1.7\n" + f"{text}".encode() * 50


def ingest(source: Path, *options: str, exit_code: int = 0) -> str:
    result = runner.invoke(app, ["ingest", str(source), "--batch", "boxes", *options])
    assert result.exit_code == exit_code, result.output
    return result.stdout


def report_lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("ingest-report.ndjson").read_text().splitlines()]


def report() -> dict[str, dict[str, Any]]:
    """Return the lines of the report by path; the test fails where a path is there twice."""
    lines = report_lines()
    with Path("ingest-report.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["document_id"] or None for row in rows] == [each["document_id"] for each in lines]
    assert len({each["path_bytes"] or each["path"] for each in lines}) == len(lines)
    return {each["path"]: each for each in lines}


def states() -> dict[str, tuple[str, str | None]]:
    return {path: (each["state"], each["error_code"]) for path, each in report().items()}


def documents(api: ServedApi) -> list[Document]:
    with api.database.transaction() as session:
        return session.query(Document).order_by(Document.filename).all()
