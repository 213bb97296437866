import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import pymupdf
import pytest

from cli.earlier_results import is_done
from cli.errors import CommandError
from cli.ocr import WARNINGS
from cli.ocr_choices import chosen_options
from cli.ocr_run import FileOutcome, FileReader
from tests.support.pdf_files import grey_pages
from tests.support.pipeline import tiff_of
from workers.ocr.exports.formats import FORMATS, ExportFormat
from workers.ocr.options import DocumentWarning, OcrOptions
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.result import PageResult, StageSeconds
from workers.page_renderer import PageRenderer, RenderLimits

_SKIPPED = "PagefleetSkippedPages"


class FailingEngine:
    """Reads nothing, and fails at the pages of these indexes."""

    model_version = "none"

    def __init__(self, failing: set[int]) -> None:
        self._failing = failing

    def read_pages(
        self, pages: Iterable[PageImage | PageResult | PageFailure]
    ) -> Iterator[PageResult | PageFailure]:
        for page in pages:
            if page.page_index in self._failing:
                yield PageFailure(page.page_index, "internal", "It failed.")
            elif isinstance(page, PageImage):
                yield empty_page(page)
            else:
                yield page


def empty_page(page: PageImage) -> PageResult:
    return PageResult(
        page_index=page.page_index,
        width_px=page.width_px,
        height_px=page.height_px,
        dpi=page.dpi,
        rotation_deg=0,
        skew_deg=0.0,
        crops_found=0,
        crops_kept=0,
        lines=(),
        blocks=(),
        seconds=StageSeconds(),
    )


@pytest.mark.parametrize("output_format", list(FORMATS))
@pytest.mark.parametrize(("failing", "done"), [(set(), True), ({1}, False)])
def test_a_result_that_lacks_a_page_is_not_taken_for_done(
    tmp_path: Path, output_format: ExportFormat, failing: set[int], *, done: bool
) -> None:
    path, output = tmp_path / "scan.pdf", tmp_path / "scan.out"
    path.write_bytes(grey_pages([10, 20]))
    os.utime(path, (1_000_000_000, 1_000_000_000))

    with PageRenderer(RenderLimits()) as renderer:
        reader = FileReader(
            renderer,
            FailingEngine(failing),
            options=OcrOptions(mode="ocr"),
            output_format=output_format,
        )
        reader.read(path, output, on_page=lambda _done, _total: None)

    assert is_done(path, output, output_format=output_format) is done


def read(
    path: Path, output: Path, *, output_format: ExportFormat, options: OcrOptions
) -> FileOutcome:
    with PageRenderer(RenderLimits()) as renderer:
        reader = FileReader(
            renderer, FailingEngine(set()), options=options, output_format=output_format
        )
        return reader.read(path, output, on_page=lambda _done, _total: None)


def test_pages_that_are_left_out_are_counted_and_stand_in_the_result(tmp_path: Path) -> None:
    path, output = tmp_path / "scan.pdf", tmp_path / "scan.json"
    path.write_bytes(grey_pages([10, 20, 30, 40]))

    options = OcrOptions(mode="ocr", pages="4-9,2", languages=("de",))
    outcome = read(path, output, output_format="json", options=options)

    result = json.loads(output.read_bytes())
    assert (outcome.state, outcome.pages, outcome.pages_skipped) == ("succeeded", 4, 2)
    assert outcome.warnings == ("languages_without_effect", "pages_beyond_end")
    assert [page["state"] for page in result["pages"]] == ["skipped", "ok", "skipped", "ok"]
    assert [page["page_number"] for page in result["pages"]] == [1, 2, 3, 4]
    assert result["options"]["pages"] == "2,4-9"


@pytest.mark.parametrize("name", ["scan.pdf", "scan.tiff"])
@pytest.mark.parametrize("output_format", [each for each in FORMATS if each != "json"])
def test_every_format_keeps_the_numbers_of_pages_around_one_that_was_left_out(
    tmp_path: Path, output_format: ExportFormat, name: str
) -> None:
    path, output = tmp_path / name, tmp_path / "scan.out"
    path.write_bytes(grey_pages([10, 20, 30]) if name == "scan.pdf" else tiff_of(3))

    options = OcrOptions(mode="ocr", pages="1,3")
    outcome = read(path, output, output_format=output_format, options=options)

    assert outcome.state == "succeeded"
    content = output.read_bytes()
    if output_format == "pdf":
        made = pymupdf.open(stream=content, filetype="pdf")
        skipped = made.xref_get_key(int(made.xref_get_key(-1, "Info")[1].split()[0]), _SKIPPED)
        assert (made.page_count, skipped) == (3, ("string", "2"))
    elif output_format == "text":
        assert content.count(b"\f") == 2
    else:
        assert b"Page 2 was left out." in content


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (OcrOptions(max_pages=1), "exceeds_max_pages", "allows 1. Raise"),
        (OcrOptions(pages="3"), "no_such_page", "none of those"),
    ],
)
def test_a_file_that_the_options_exclude_is_refused_with_the_remedy(
    tmp_path: Path, options: OcrOptions, code: str, told: str
) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(grey_pages([10, 20]))

    outcome = read(path, tmp_path / "scan.json", output_format="json", options=options)

    assert outcome.error_code == code
    assert told in (outcome.error_message or "")
    assert "Here it is --" in (outcome.error_message or "")


@pytest.mark.parametrize("wrong", [{"pages": "3-1"}, {"languages": "german!"}, {"max_pages": 0}])
def test_a_choice_that_cannot_be_is_named_by_its_option(wrong: dict[str, Any]) -> None:
    given = {"pages": None, "languages": None, "max_pages": None, **wrong}
    (name,) = wrong

    with pytest.raises(CommandError, match=f"--{name.replace('_', '-')}"):
        chosen_options(mode="auto", text_order="reading", dpi=200, **given)


def test_every_warning_of_a_document_has_its_sentence() -> None:
    assert set(WARNINGS) == set(get_args(DocumentWarning))
