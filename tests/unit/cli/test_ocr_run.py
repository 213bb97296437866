import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cli.earlier_results import is_done
from cli.ocr_run import FileReader
from tests.support.pdf_files import grey_pages
from workers.ocr.exports.formats import FORMATS, ExportFormat
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.result import PageResult, StageSeconds
from workers.page_renderer import PageRenderer, RenderLimits


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
