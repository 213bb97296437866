"""Folders of any shape: every entry below is found, in the order of names."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.ingest.archives import ArchiveLimits
from cli.ingest.folder import Folder

PDF = b"%PDF-1.7\n"


def keys(root: Path) -> list[str]:
    return [found.key for found in Folder(root, ArchiveLimits()).scan()]


@pytest.fixture
def nest(tmp_path: Path) -> Iterator[Callable[[str, int], Path]]:
    """Make folders in one another, deeper than a path can say or Python's own tools remove."""

    def make(name: str, depth: int) -> Path:
        opened = os.open(tmp_path, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir(name, dir_fd=opened)
            below = os.open(name, os.O_RDONLY, dir_fd=opened)
            os.close(opened)
            opened = below
        os.close(opened)
        return tmp_path.joinpath(*[name] * depth)

    yield make
    subprocess.run(["rm", "-rf", tmp_path], check=True)  # noqa: S603, S607 - our own folder


def test_entries_come_in_the_order_of_names_folder_by_folder(tmp_path: Path) -> None:
    for name in ("b/2.pdf", "b/1/x.pdf", "a.pdf", "c.pdf"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PDF)

    assert keys(tmp_path) == ["a.pdf", "b/1/x.pdf", "b/2.pdf", "c.pdf"]


def test_folders_nested_deeper_than_calls_may_be_are_read(
    tmp_path: Path, nest: Callable[[str, int], Path]
) -> None:
    (nest("d", 1_200) / "a.pdf").write_bytes(PDF)
    (tmp_path / "late.pdf").write_bytes(PDF)

    assert keys(tmp_path) == [f"{'d/' * 1_200}a.pdf", "late.pdf"]


def test_a_folder_whose_path_is_too_long_to_open_is_named(
    tmp_path: Path, nest: Callable[[str, int], Path]
) -> None:
    nest("d" * 250, 20)
    (tmp_path / "late.pdf").write_bytes(PDF)

    found = list(Folder(tmp_path, ArchiveLimits()).scan())

    assert [each.refusal.code if each.refusal else each.key for each in found] == [
        "unreadable",
        "late.pdf",
    ]
