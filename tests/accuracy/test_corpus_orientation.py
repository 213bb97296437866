"""Real pages that lie on their side or on their head, and real downward writing."""

from pathlib import Path

import pytest

from tests.support.corpus import require_corpus
from tests.support.metrics import character_error_rate, error_rate_without_spaces
from workers.ocr.engine import OcrEngine
from workers.ocr.page_image import PageImage
from workers.ocr.page_text import page_text
from workers.ocr.result import PageResult, page_json
from workers.ocr.sources import SourceLimits, open_source
from workers.ocr.upright import turned_page

# Measured: 0.000 on each; upright pages of the same text are read with 0.000 too.
MAX_ROTATED_CER = 0.01
# Measured: 0.136 on a printed page in two tiers with pictures, 0.103 on handwriting, 0.021 on a
# poem in two tiers.
MAX_DOWNWARD_CER = 0.15


def first_page(path: Path) -> PageImage:
    with open_source(path, limits=SourceLimits()) as source:
        return source.render(0, dpi=200, max_pixels=60_000_000).image


def read(engine: OcrEngine, page: PageImage) -> PageResult:
    (outcome,) = engine.read_pages([page])
    assert isinstance(outcome, PageResult)
    return outcome


def truth(path: Path) -> str:
    return path.with_suffix(".gt.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "rotation_deg"),
    [
        ("phototest-rotated-L.png", 90),
        ("phototest-rotated-180.png", 180),
        ("phototest-rotated-R.png", 270),
        ("phototestrot.tif", 90),
        # These ask for a turn that does not set them upright.
        ("ocr_test_rotated_90.pdf", 0),
        ("ocr_test_rotated_180.pdf", 0),
        ("ocr_test_rotated_270.pdf", 0),
    ],
)
def test_a_page_that_lies_is_read_as_well_as_an_upright_one(
    engine: OcrEngine, name: str, rotation_deg: int
) -> None:
    path = require_corpus(name)

    outcome = read(engine, first_page(path))

    assert outcome.rotation_deg == rotation_deg
    assert character_error_rate(truth(path), page_text(page_json(outcome))) <= MAX_ROTATED_CER


@pytest.mark.parametrize("name", ["geppo1803_00021.jpg", "tategaki2026-04-24-094138.png", "jo.pdf"])
def test_downward_writing_is_not_turned_and_read_from_the_right(
    engine: OcrEngine, name: str
) -> None:
    path = require_corpus(name)

    outcome = read(engine, first_page(path))

    assert outcome.rotation_deg == 0
    text = page_text(page_json(outcome))
    assert error_rate_without_spaces(truth(path), text) <= MAX_DOWNWARD_CER


def test_downward_writing_that_lies_is_set_upright(engine: OcrEngine) -> None:
    path = require_corpus("geppo1803_00021.jpg")

    outcome = read(engine, turned_page(first_page(path), 1))

    assert outcome.rotation_deg == 0
    text = page_text(page_json(outcome))
    assert error_rate_without_spaces(truth(path), text) <= MAX_DOWNWARD_CER


def test_a_scan_with_a_turn_and_a_skew_is_read_like_the_straight_one(engine: OcrEngine) -> None:
    straight = read(engine, first_page(require_corpus("jbig2.pdf")))

    skewed = read(engine, first_page(require_corpus("rotated_skew.pdf")))

    assert skewed.rotation_deg == 90
    assert abs(skewed.skew_deg) > 1
    texts = [page_text(page_json(outcome)) for outcome in (straight, skewed)]
    assert character_error_rate(*texts) <= 0.03
