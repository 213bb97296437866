from pathlib import Path

import pytest

from bench.corpus import CorpusFile, read_corpus, spread
from bench.errors import BenchError

INDEX = """path\tarea\tkind\tlanguage
accuracy/a.png\taccuracy\tscan\ten
accuracy/b.pdf\taccuracy\tborn-digital\tde
accuracy/untold.png\taccuracy\tscan\ten
robust/c.pdf\trobust\tbroken\t-
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "accuracy").mkdir()
    (tmp_path / "INDEX.tsv").write_text(INDEX)
    (tmp_path / "accuracy" / "a.gt.txt").write_text("one")
    (tmp_path / "accuracy" / "b.gt.txt").write_text("eins\fzwei")
    return tmp_path


def file_of(name: str, kind: str, language: str) -> CorpusFile:
    return CorpusFile(Path(name), name, kind, language, ("text",))


def test_files_with_a_true_text_are_read_page_by_page(corpus: Path) -> None:
    files = read_corpus(corpus)

    assert [(file.path.name, file.page_texts) for file in files] == [
        ("a.png", ("one",)),
        ("b.pdf", ("eins", "zwei")),
    ]


def test_one_kind_can_be_chosen(corpus: Path) -> None:
    assert [file.kind for file in read_corpus(corpus, only="scans")] == ["scan"]


def test_a_kind_without_files_is_an_error(corpus: Path) -> None:
    with pytest.raises(BenchError, match="no handwriting files"):
        read_corpus(corpus, only="handwriting")


def test_a_folder_without_an_index_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"INDEX\.tsv"):
        read_corpus(tmp_path)


def test_a_limit_takes_from_every_language_before_a_second_of_one() -> None:
    files = [
        file_of("1", "scan", "en"),
        file_of("2", "scan", "en"),
        file_of("3", "scan", "de"),
        file_of("4", "born-digital", "en"),
    ]

    assert [file.name for file in spread(files, 3)] == ["1", "3", "4"]
