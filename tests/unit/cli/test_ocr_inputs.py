import os
from pathlib import Path

import pytest

from cli.ocr_inputs import InputFile, find_inputs, output_paths
from workers.ocr.formats import HEAD_BYTES

PNG = b"\x89PNG\r\n\x1a\n"


def outputs_of(*paths: str) -> list[str]:
    files = [InputFile(Path(path)) for path in paths]
    return [str(path) for path in output_paths(files, Path("out"), suffix=".json")]


def test_a_result_has_the_name_of_its_file() -> None:
    assert outputs_of("scans/a.pdf") == ["out/a.json"]


def test_files_that_would_share_a_name_keep_their_endings() -> None:
    assert outputs_of("a.pdf", "a.png", "b.pdf") == [
        "out/a.pdf.json",
        "out/a.png.json",
        "out/b.json",
    ]


def test_files_of_one_name_from_two_folders_are_numbered() -> None:
    assert outputs_of("x/a.pdf", "y/a.pdf", "z/a.pdf") == [
        "out/a.pdf.json",
        "out/a.pdf-2.json",
        "out/a.pdf-3.json",
    ]


def test_names_that_differ_in_case_only_do_not_share_a_place() -> None:
    assert outputs_of("a.pdf", "A.png") == ["out/a.pdf.json", "out/A.png.json"]


def test_a_numbered_name_does_not_fall_on_that_of_another_file() -> None:
    names = outputs_of("x/a.pdf", "y/a.pdf", "z/a.pdf-2", "z/a.pdf-2.png")

    assert len(set(names)) == 4


def test_a_result_never_goes_over_an_input(tmp_path: Path) -> None:
    image_with_a_strange_name = tmp_path / "scan.json"
    image_with_a_strange_name.write_bytes(PNG)

    (target,) = output_paths([InputFile(image_with_a_strange_name)], tmp_path, suffix=".json")

    assert target == tmp_path / "scan.json.json"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    (folder / "1911").mkdir(parents=True)
    (folder / "1911" / "b.dat").write_bytes(PNG)
    (folder / "a.png").write_bytes(PNG)
    (folder / "notes.txt").write_text("no document")
    (folder / "lost.pdf").write_bytes(b"")
    return folder


def test_a_folder_is_searched_for_documents_by_content(archive: Path) -> None:
    found = find_inputs([archive])

    assert [str(each.path.relative_to(archive)) for each in found.files] == [
        "1911/b.dat",
        "a.png",
        "lost.pdf",
    ]
    assert found.skipped == (archive / "notes.txt",)


def test_a_pipe_in_a_folder_is_not_opened_and_not_passed_over(archive: Path) -> None:
    pipe = archive / "pipe.pdf"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR)
    os.write(descriptor, b"no document" * HEAD_BYTES)

    found = find_inputs([archive])

    os.close(descriptor)
    assert pipe in [each.path for each in found.files]


def test_files_of_a_folder_keep_their_way_below_it(archive: Path) -> None:
    files = find_inputs([archive]).files

    assert output_paths(files, Path("out"), suffix=".txt")[0] == Path("out/1911/b.txt")


def test_a_named_file_is_read_whatever_it_holds(archive: Path) -> None:
    found = find_inputs([archive / "notes.txt", archive / "missing.pdf"])

    assert len(found.files) == 2
