"""Lines cut out of printed pages, as low as they are: with detection, and without."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.scores import edit_distance, normalized
from tests.support.models import require_corpus
from workers.ocr.direct_line import DIRECT_SCORE
from workers.ocr.engine import OcrEngine
from workers.ocr.page_image import PageImage
from workers.ocr.page_text import page_text
from workers.ocr.pdf import PdfSource
from workers.ocr.result import PageResult, page_json

_FILES: Final = {"de": "debref_de_p075", "fr": "debref_fr_p034", "ja": "debref_ja_p085"}
_DPI: Final = 150
_MARGIN_PX: Final = 3
_EVERY: Final = 4
# Of lines that follow each other closely, so that some images hold parts of a neighbor.
MIN_DIRECT_SHARE = 0.5
MAX_CER = 0.02


@dataclass(frozen=True, slots=True)
class CutLine:
    text: str
    pixels: NDArray[np.uint8]


def cut_lines(path: Path) -> list[CutLine]:
    """Return some lines of a file's first page, each as an image of its own."""
    with PdfSource(path) as source:
        pixels = source.render(0, dpi=_DPI, max_pixels=60_000_000, mode="ocr").image.pixels
    stated = json.loads(path.with_suffix(".gt.boxes.json").read_text("utf-8"))["pages"][0]["lines"]
    lines = []
    for line in stated[::_EVERY]:
        left, top, right, bottom = (round(value * _DPI / 72) for value in line["bbox"])
        image = pixels[
            max(top - _MARGIN_PX, 0) : bottom + _MARGIN_PX,
            max(left - _MARGIN_PX, 0) : right + _MARGIN_PX,
        ]
        lines.append(CutLine(line["text"], np.ascontiguousarray(image)))
    return lines


@pytest.mark.parametrize("language", sorted(_FILES))
def test_most_lines_need_no_detection_and_are_read_right(engine: OcrEngine, language: str) -> None:
    (path,) = require_corpus().rglob(f"{_FILES[language]}.pdf")
    lines = cut_lines(path)

    results = list(
        engine.read_pages(PageImage(i, line.pixels, dpi=_DPI) for i, line in enumerate(lines))
    )

    errors = length = direct_count = 0
    for line, result in zip(lines, results, strict=True):
        assert isinstance(result, PageResult)
        if [each.detection_score for each in result.lines] == [DIRECT_SCORE]:
            expected = normalized(line.text, language)
            errors += edit_distance(expected, normalized(page_text(page_json(result)), language))
            length += len(expected)
            direct_count += 1
    assert direct_count >= MIN_DIRECT_SHARE * len(lines)
    assert errors <= MAX_CER * length
