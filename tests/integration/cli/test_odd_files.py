"""Files that are odd in one way each, through one process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run_pagefleet
from tests.support.models import require_bundle
from tests.support.odd_files import write_odd_files


def outcome_of(record: dict[str, Any]) -> str:
    """The text, or the code of the error of the document or of its first page."""
    if record["error"]:
        return str(record["error"]["code"])
    result = json.loads(Path(record["output"]).read_text("utf-8"))
    first = result["pages"][0]
    return str(first["error"]["code"] if first["state"] == "failed" else result["full_text"])


@pytest.mark.timeout(600)
def test_each_odd_file_ends_in_its_text_or_in_its_error(tmp_path: Path) -> None:
    require_bundle()
    expected = write_odd_files(tmp_path)

    done = run_pagefleet("ocr", "--json", *expected, "-o", tmp_path / "out", timeout_s=600)

    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {record["file"]: outcome_of(record) for record in records} == {
        str(path): outcome for path, outcome in expected.items()
    }
    assert "Traceback" not in done.stderr
