"""The harness of ``pagefleet bench ocr`` with a fake peer in a real process, on two files."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from bench.comparison import compare_among
from bench.contenders import Contender
from bench.corpus import CorpusFile
from bench.errors import BenchError
from bench.page_files import BenchPage, write_pages
from bench.program_process import ROOT
from bench.report import markdown
from bench.rounds import running
from workers.page_renderer import PageRenderer, RenderLimits


def fake(name: str, *options: str, processes: int = 1) -> Contender:
    command = (sys.executable, "-m", "tests.support.fake_program", *options)
    return Contender(name, (command,) * processes, {"PYTHONPATH": str(ROOT)}, "fake")


def document(folder: Path, name: str, *, true_text: str, read_text: str) -> CorpusFile:
    path = folder / f"{name}.png"
    image = Image.new("L", (200, 100), 255)
    image.paste(0, (20, 40, 180, 60))  # without ink it would be nobody's page
    image.save(path)
    path.with_suffix(".read.txt").write_text(read_text)
    return CorpusFile(path, path.name, "scan", "en", (true_text,))


@pytest.fixture
def renderer() -> Iterator[PageRenderer]:
    with PageRenderer(RenderLimits()) as renderer:
        yield renderer


@pytest.fixture
def pages(tmp_path: Path, renderer: PageRenderer) -> list[BenchPage]:
    files = [
        document(tmp_path, "good", true_text="one two", read_text="one two"),
        document(tmp_path, "half", true_text="one two", read_text="two one"),
    ]
    return write_pages(files, tmp_path, renderer, dpi=200, max_pages=0, on_file=lambda _file: None)


def test_two_contenders_are_measured_on_the_same_pages(pages: list[BenchPage]) -> None:
    one, two = compare_among([fake("one"), fake("two", processes=2)], pages, pages_per_round=1)

    assert (one["pages"], two["pages"]) == (2, 2)
    assert one["f1"] == two["f1"] == 1.0
    assert 0 < one["cer"] == two["cer"]
    assert one["program"] == "Fake 1.0"
    assert one["stage_s_per_page"] == {"recognize": 0.5}
    assert min(one["pages_per_s"], one["peak_mib"], two["peak_mib"]) > 0


def test_a_page_that_a_program_fails_on_counts_as_read_empty(
    tmp_path: Path, renderer: PageRenderer
) -> None:
    file = document(tmp_path, "unreadable", true_text="one two", read_text="")
    pages = write_pages(
        [file], tmp_path, renderer, dpi=200, max_pages=0, on_file=lambda _file: None
    )

    (figures,) = compare_among([fake("one")], pages, pages_per_round=1)

    assert (figures["pages_failed"], figures["cer"], figures["f1"]) == (1, 1.0, 0.0)


def test_a_program_that_cannot_start_is_told_with_its_last_words() -> None:
    with pytest.raises(BenchError, match="no models here"), running(fake("broken", "--broken")):
        pass


def test_the_tables_show_every_program_and_language(pages: list[BenchPage]) -> None:
    contenders = compare_among([fake("one"), fake("two")], pages, pages_per_round=2)
    files = [{"language": "en", "kind": "scan"}]

    shown = markdown({
        "title": "OCR of 2 pages",
        "notes": ["on this machine"],
        "contenders": contenders,
        "files": files,
        "left_out": {"three": "not installed"},
    })

    assert "| language | files | one CER / F1 | two CER / F1 |" in shown
    assert "- three: not compared: not installed" in shown
