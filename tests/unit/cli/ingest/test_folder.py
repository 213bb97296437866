"""Folders of any shape: every entry below is found, in the order of names."""

import os
from pathlib import Path

from cli.ingest.archives import ArchiveLimits
from cli.ingest.folder import Folder

PDF = b"%PDF-1.7\n"


def keys(root: Path) -> list[str]:
    return [found.key for found in Folder(root, ArchiveLimits()).scan()]


def test_entries_come_in_the_order_of_names_folder_by_folder(tmp_path: Path) -> None:
    for name in ("b/2.pdf", "b/1/x.pdf", "a.pdf", "c.pdf"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PDF)

    assert keys(tmp_path) == ["a.pdf", "b/1/x.pdf", "b/2.pdf", "c.pdf"]


def test_folders_nested_deeper_than_calls_may_be_are_read(tmp_path: Path) -> None:
    depth = 1_200
    folder = tmp_path / "deep"
    folder.mkdir()
    (tmp_path / "late.pdf").write_bytes(PDF)
    opened = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=opened)
        below = os.open("d", os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = below
    os.close(opened)
    (folder / "/".join(["d"] * depth) / "a.pdf").write_bytes(PDF)

    assert keys(tmp_path) == [f"deep/{'d/' * depth}a.pdf", "late.pdf"]


def test_a_folder_with_a_name_too_long_to_open_is_named(tmp_path: Path) -> None:
    opened = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=opened)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = below
    os.close(opened)
    (tmp_path / "late.pdf").write_bytes(PDF)

    found = list(Folder(tmp_path, ArchiveLimits()).scan())

    assert [each.refusal.code if each.refusal else each.key for each in found] == [
        "unreadable",
        "late.pdf",
    ]
