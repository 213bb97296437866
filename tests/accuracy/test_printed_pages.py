"""Pages printed by the test itself: what is read can be compared with what was printed."""

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.support.metrics import character_error_rate
from tests.support.printed_pages import PROSE, print_page
from workers.ocr.engine import OcrEngine
from workers.ocr.page_image import PageImage
from workers.ocr.page_text import page_text
from workers.ocr.result import page_json

MAX_CER = 0.02


def read(engine: OcrEngine, page: PageImage) -> str:
    (outcome,) = engine.read_pages([page])
    return page_text(page_json(outcome))


@pytest.mark.parametrize("size_px", [14, 20, 32, 60])
def test_printed_text_is_read(engine: OcrEngine, size_px: int) -> None:
    page = print_page(size_px=size_px, width_px=max(600, 32 * size_px))

    assert character_error_rate("\n".join(PROSE), read(engine, page)) <= MAX_CER


def test_small_print_on_a_large_page_is_read(engine: OcrEngine) -> None:
    """Shrunk to the detector's comfortable side the letters would be 3 px high."""
    lines = tuple(f"{row} {PROSE[row % 6]} {PROSE[(row + 1) % 6]}" for row in range(12))
    small = print_page(lines, size_px=18, width_px=900)
    page = np.full((3500, 3500, 3), 255, dtype=np.uint8)
    page[1400 : 1400 + small.height_px, 1300 : 1300 + small.width_px] = small.pixels

    text = read(engine, PageImage(0, page, dpi=400.0))

    assert character_error_rate("\n".join(lines), text) <= MAX_CER


def test_a_long_receipt_is_read_to_its_end(engine: OcrEngine) -> None:
    lines = tuple(f"article {row} at {row}.25" for row in range(1, 151))
    page = print_page(lines, size_px=28, width_px=480)

    text = read(engine, page)

    assert page.height_px > 6000
    assert character_error_rate("\n".join(lines), text) <= MAX_CER


def test_two_columns_are_read_one_after_the_other(engine: OcrEngine) -> None:
    left, right = PROSE, tuple(reversed(PROSE))
    pixels = np.concatenate(
        [print_page(lines, size_px=28, width_px=800).pixels for lines in (left, right)], axis=1
    )

    text = read(engine, PageImage(0, pixels, dpi=200.0))

    assert character_error_rate("\n".join((*left, *right)), text) <= MAX_CER


@pytest.mark.parametrize("angle_deg", [-3.0, 2.0, 5.0])
def test_a_page_that_lies_askew_is_read_and_its_skew_told(
    engine: OcrEngine, angle_deg: float
) -> None:
    straight = print_page(size_px=32, top_px=150)
    # Pillow turns counterclockwise.
    turned = Image.fromarray(straight.pixels).rotate(
        -angle_deg, resample=Image.Resampling.BICUBIC, fillcolor="white"
    )

    (outcome,) = engine.read_pages([PageImage(0, np.asarray(turned), dpi=200.0)])

    page = page_json(outcome)
    assert page["skew_deg"] == pytest.approx(angle_deg, abs=0.4)
    assert character_error_rate("\n".join(PROSE), page_text(page)) <= MAX_CER


def test_gray_noisy_print_is_read(engine: OcrEngine) -> None:
    page = print_page(size_px=32)
    rng = np.random.default_rng(3)
    faded = page.pixels * 0.55 + 70 + rng.normal(0, 10, page.pixels.shape)
    pixels = cv2.GaussianBlur(np.clip(faded, 0, 255).astype(np.uint8), (3, 3), 0)

    text = read(engine, PageImage(0, np.asarray(pixels, dtype=np.uint8), dpi=200.0))

    assert character_error_rate("\n".join(PROSE), text) <= MAX_CER


def test_bright_print_on_dark_paper_is_read(engine: OcrEngine) -> None:
    page = print_page(size_px=32)

    text = read(engine, PageImage(0, np.asarray(255 - page.pixels, dtype=np.uint8), dpi=200.0))

    assert character_error_rate("\n".join(PROSE), text) <= MAX_CER
