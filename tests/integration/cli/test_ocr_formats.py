"""``pagefleet ocr --format``: every format of real readings, the searchable PDF read again."""

import json
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from cli.samples import SAMPLE_PASSWORD, Sample
from tests.support.commands import run_pagefleet
from tests.support.export_checks import (
    alto_words,
    check_alto,
    check_hocr,
    csv_rows,
    hocr_words,
    words_of,
)
from tests.support.models import require_bundle
from tests.support.searchable import lost_words, word_count

FILES = ["letters.pdf", "register.tiff", "label.png"]


@pytest.fixture(scope="module")
def made(samples: dict[str, Sample], tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_bundle()
    out_dir = tmp_path_factory.mktemp("formats")
    for format_, names in {
        **dict.fromkeys(("json", "pdf"), FILES),
        **dict.fromkeys(("hocr", "alto", "csv", "markdown"), FILES[:1]),
    }.items():
        files = [samples[each].path for each in names]
        done = run_pagefleet("ocr", *files, "-o", out_dir, "--format", format_)
        assert done.returncode == 0, done.stderr
    return out_dir


def pages_of(made: Path, name: str) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = json.loads((made / f"{name}.json").read_text("utf-8"))["pages"]
    return pages


def test_each_format_holds_the_words_of_the_result(made: Path) -> None:
    name = Path(FILES[0]).stem
    words = words_of(pages_of(made, name))

    assert words
    assert hocr_words(check_hocr((made / f"{name}.hocr").read_text("utf-8"))) == words
    assert alto_words(check_alto((made / f"{name}.alto.xml").read_text("utf-8"))) == words
    rows = csv_rows((made / f"{name}.csv").read_bytes().decode())
    assert len(rows) == sum(len(page["lines"]) for page in pages_of(made, name))
    assert "## Page 1" in (made / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize("name", [Path(each).stem for each in FILES])
def test_the_words_of_a_searchable_pdf_come_back_at_their_places(made: Path, name: str) -> None:
    pages = pages_of(made, name)

    assert len(lost_words(made / f"{name}.searchable.pdf", pages)) <= 0.01 * word_count(pages)


def test_an_encrypted_pdf_becomes_a_searchable_one_with_its_password(
    samples: dict[str, Sample], tmp_path: Path
) -> None:
    source = samples["encrypted.pdf"].path

    done = run_pagefleet(
        *("ocr", source, "-o", tmp_path, "--format", "pdf"),
        PAGEFLEET_CLIENT_FILE_PASSWORD=SAMPLE_PASSWORD,
    )

    assert done.returncode == 0, done.stderr
    with pymupdf.open(tmp_path / "encrypted.searchable.pdf") as document:
        assert document.authenticate(SAMPLE_PASSWORD)
        assert document.page_count


def test_an_unknown_format_is_told_the_known_ones() -> None:
    done = run_pagefleet("ocr", "scan.pdf", "--format", "docx")

    assert done.returncode == 2
    assert "json, text, markdown, hocr, alto, csv, pdf" in done.stderr.replace("\n", " ")
