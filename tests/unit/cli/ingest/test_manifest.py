"""The rows of a manifest on this machine."""

from pathlib import Path

import pytest

from cli.errors import CommandError
from cli.ingest.manifest import Manifest

TOO_LONG = 3 * 2**20


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("boxes.csv", ["path,id", "a.pdf" + "," * TOO_LONG, "b.pdf,7"]),
        ("boxes.ndjson", ['{"path": "c.pdf"}', "x" * TOO_LONG, '{"path": "b.pdf", "id": 7}']),
    ],
)
def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_read(
    tmp_path: Path, name: str, lines: list[str]
) -> None:
    for file in ("b.pdf", "c.pdf"):
        (tmp_path / file).write_bytes(b"%PDF")
    manifest = tmp_path / name
    manifest.write_text("\n".join(lines))

    found = list(Manifest(manifest).scan())

    refused, read = found[-2:]
    assert refused.path == f"{name}:2"
    assert refused.refusal is not None
    assert refused.refusal.message == "A line has more than 1,048,576 characters."
    assert (read.path, read.refusal) == ("b.pdf", None)
    assert read.fields.external_id == "7"


def test_a_first_line_that_is_too_long_names_no_columns(tmp_path: Path) -> None:
    manifest = tmp_path / "boxes.csv"
    manifest.write_text("path," + "x" * TOO_LONG + "\n")

    with pytest.raises(CommandError, match="first line has more than 1,048,576 characters"):
        list(Manifest(manifest).scan())


def test_a_row_that_has_no_end_is_refused_and_nothing_behind_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "b.pdf").write_bytes(b"%PDF")
    manifest = tmp_path / "boxes.csv"
    manifest.write_text('path,id\nb.pdf,7\n"a\n' + '","a\n' * 2**20)

    read, refused = Manifest(manifest).scan()

    assert (read.path, read.refusal) == ("b.pdf", None)
    assert refused.refusal is not None
    assert refused.refusal.code == "invalid_row"
    assert "more than 1,048,576 characters" in refused.refusal.message
