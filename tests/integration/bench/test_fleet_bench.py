"""A whole fleet on servers of its own, as ``pagefleet bench scale`` starts it."""

import json
from pathlib import Path

import pytest

from bench.queued_documents import small_pdf
from tests.support.commands import run_pagefleet
from tests.support.engines import NumberingEngine
from tests.support.models import require_bundle
from workers.ocr.options import OcrOptions
from workers.ocr.page_reader import PageReader
from workers.ocr.result import PageResult
from workers.page_renderer import PageRenderer, RenderLimits
from workers.settings import models_dir


@pytest.mark.timeout(400)
def test_a_backlog_is_worked_off_and_measured(tmp_path: Path) -> None:
    require_bundle()

    done = run_pagefleet(
        *("bench", "scale", "--documents", "100", "--profile", "balanced", "--no-plot", "--json"),
        *("--out", tmp_path),
        timeout_s=380,
        PAGEFLEET_MODELS_DIR=str(models_dir()),
    )

    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record == json.loads((tmp_path / "scale.json").read_text())
    assert record["documents"] == record["samples"][-1]["finished"] == 100
    assert record["redis_peak_bytes"] < 50 * 2**20
    assert record["rows_written_per_document"] > 2


@pytest.mark.timeout(400)
def test_the_statements_of_a_fleet_are_timed_on_an_empty_database_and_a_full_one(
    tmp_path: Path,
) -> None:
    done = run_pagefleet(
        *("bench", "database", "--documents", "10", "--pages", "20", "--queued", "30", "--json"),
        *("--out", tmp_path),
        timeout_s=380,
    )

    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record == json.loads((tmp_path / "database.json").read_text())
    assert (record["documents"], record["pages"], record["queued"]) == (10, 200, 30)
    assert record["empty"].keys() == record["full"].keys()
    assert record["bytes_per_page"] > 100


def test_a_made_document_has_its_text_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "small.pdf"
    path.write_bytes(small_pdf(7))

    with PageRenderer(RenderLimits()) as renderer:
        assert renderer.open(path).page_count == 1
        rendered = renderer.pages([0], dpi=OcrOptions().dpi, mode="auto")
        (page,) = PageReader(NumberingEngine()).read_pages(rendered)

    assert isinstance(page, PageResult)
    assert (page.route, page.lines[0].text) == ("text", "Ledger page 7")
    assert small_pdf(7) == small_pdf(7) != small_pdf(8)
