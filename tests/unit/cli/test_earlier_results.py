import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cli.earlier_results import is_done
from cli.whole_file import whole_file
from workers.ocr.document_result import DocumentSource, DocumentTotals

ODD_NAME = 'scan ","full_text":" {}.tif'


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    path = tmp_path / ODD_NAME
    path.write_bytes(bytes(10))
    return path


@pytest.fixture
def result(scan: Path, tmp_path: Path) -> Path:
    """The result of the scan, as a run writes it."""
    header = DocumentTotals().header(
        document_id="1",
        source=DocumentSource(
            scan.name, hashlib.sha256(scan.read_bytes()).hexdigest(), "image/tiff", 10
        ),
        model_version="m",
        options={},
    )
    return write(tmp_path / "scan.json", header)


def write(path: Path, header: dict[str, Any]) -> Path:
    whole = {**header, "state": "succeeded", "full_text": "text", "pages": []}
    with whole_file(path) as stream:
        stream.write(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())
    return path


def change(result: Path, **fields: Any) -> None:
    whole = json.loads(result.read_text("utf-8"))
    result.write_text(json.dumps({**whole, **fields}, separators=(",", ":")))


def test_a_result_of_this_file_is_done(scan: Path, result: Path) -> None:
    assert is_done(scan, result, output_format="json")


def test_a_file_without_a_result_is_not_done(scan: Path, tmp_path: Path) -> None:
    assert not is_done(scan, tmp_path / "none.json", output_format="json")


def test_a_file_that_was_changed_since_is_not_done(scan: Path, result: Path) -> None:
    after = result.stat().st_mtime_ns + 1
    os.utime(scan, ns=(after, after))

    assert not is_done(scan, result, output_format="json")


def test_another_file_of_the_same_name_and_size_is_not_done(scan: Path, result: Path) -> None:
    before = scan.stat()
    scan.write_bytes(b"1" * before.st_size)
    os.utime(scan, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert not is_done(scan, result, output_format="json")


def test_a_result_in_part_is_not_done(scan: Path, result: Path) -> None:
    change(result, state="partly_succeeded")

    assert not is_done(scan, result, output_format="json")


@pytest.mark.parametrize("field", [{"filename": "scan.png"}, {"size_bytes": 11}])
def test_a_result_of_another_file_is_not_done(
    scan: Path, result: Path, field: dict[str, Any]
) -> None:
    source = json.loads(result.read_text("utf-8"))["source"]
    change(result, source={**source, **field})

    assert not is_done(scan, result, output_format="json")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"state":"succeeded"}', '{,"full_text":'])
def test_what_is_no_result_of_ours_is_not_done(scan: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "scan.json").write_text(content)

    assert not is_done(scan, tmp_path / "scan.json", output_format="json")


@pytest.mark.parametrize(("content", "done"), [("text\n", True), ("", False)])
def test_a_text_is_done_when_it_is_not_empty(
    scan: Path, tmp_path: Path, content: str, *, done: bool
) -> None:
    (tmp_path / "scan.txt").write_text(content)

    assert is_done(scan, tmp_path / "scan.txt", output_format="text") is done
