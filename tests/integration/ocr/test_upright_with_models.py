"""Printed pages that lie, through the real models."""

import dataclasses

import numpy as np
import pytest

from tests.support.printed_pages import print_page
from workers.ocr.engine import OcrEngine
from workers.ocr.page_image import PageImage
from workers.ocr.page_text import page_text
from workers.ocr.result import PageResult, page_json
from workers.ocr.upright import turned_page


def read(engine: OcrEngine, page: PageImage) -> PageResult:
    (outcome,) = engine.read_pages([page])
    assert isinstance(outcome, PageResult)
    return outcome


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_page_that_lies_gives_the_result_of_the_upright_one(
    engine: OcrEngine, turns: int
) -> None:
    upright = print_page()
    lying = dataclasses.replace(turned_page(upright, turns), rotation_deg=0)

    expected, found = read(engine, upright), read(engine, lying)

    assert found.rotation_deg == -90 * turns % 360
    assert (found.width_px, found.height_px) == (upright.width_px, upright.height_px)
    assert [line.quad.corners.tolist() for line in found.lines] == [
        line.quad.corners.tolist() for line in expected.lines
    ]
    assert page_text(page_json(found)) == page_text(page_json(expected))


@pytest.mark.parametrize("size_px", [(900, 700), (60, 1200), (1200, 40)])
def test_a_blank_page_is_not_turned(engine: OcrEngine, size_px: tuple[int, int]) -> None:
    outcome = read(engine, PageImage(0, np.full((*size_px, 3), 255, dtype=np.uint8), dpi=200.0))

    assert outcome.rotation_deg == 0
    assert outcome.lines == ()


def test_a_picture_without_text_is_not_turned(engine: OcrEngine) -> None:
    rng = np.random.default_rng(5)
    clouds = rng.normal(0, 1, (40, 30, 3)).cumsum(axis=0).cumsum(axis=1)
    scaled = (clouds - clouds.min()) / (clouds.max() - clouds.min()) * 255
    pixels = np.ascontiguousarray(scaled.astype(np.uint8).repeat(20, axis=0).repeat(20, axis=1))

    assert read(engine, PageImage(0, pixels, dpi=200.0)).rotation_deg == 0
