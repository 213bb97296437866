"""Real scans of one column that stand upright, from the folder beside the checkout."""

import csv
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.support.metrics import character_error_rate
from tests.support.models import require_corpus
from workers.ocr.engine import OcrEngine
from workers.ocr.page_image import PageImage
from workers.ocr.page_text import page_text
from workers.ocr.result import page_json

# Measured on 9 scans: mean 0.023, worst 0.064 (18th-century print); the bounds leave a little for
# another processor's arithmetic.
MAX_MEAN_CER = 0.027
MAX_WORST_CER = 0.075
IMAGE_ENDINGS = (".tif", ".png", ".jpg")


def upright_scans(corpus: Path) -> list[Path]:
    with (corpus / "INDEX.tsv").open(encoding="utf-8", newline="") as index:
        rows = list(csv.DictReader(index, delimiter="\t"))
    return [
        corpus / row["path"]
        for row in rows
        if row["area"] == "accuracy"
        and row["kind"] == "scan"
        and row["language"] != "ja"  # set in vertical columns
        and row["path"].endswith(IMAGE_ENDINGS)
        and "rotated" not in row["tests"]
    ]


def load(path: Path) -> PageImage:
    pixels = cv2.cvtColor(cv2.imread(str(path), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    return PageImage(0, np.asarray(pixels, dtype=np.uint8), dpi=300.0)


@pytest.fixture(scope="module")
def error_rates(engine: OcrEngine) -> dict[str, float]:
    scans = upright_scans(require_corpus())
    outcomes = engine.read_pages(load(path) for path in scans)
    return {
        path.name: character_error_rate(
            path.with_suffix(".gt.txt").read_text(encoding="utf-8"), page_text(page_json(outcome))
        )
        for path, outcome in zip(scans, outcomes, strict=True)
    }


def test_scans_are_read_well_on_average(error_rates: dict[str, float]) -> None:
    assert np.mean(list(error_rates.values())) <= MAX_MEAN_CER, error_rates


def test_no_scan_is_read_badly(error_rates: dict[str, float]) -> None:
    assert max(error_rates.values()) <= MAX_WORST_CER, error_rates
