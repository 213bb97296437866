"""Which pages are the same page to a reader."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from workers.ocr.geometry import Box, Quad
from workers.ocr.page_content import page_digest
from workers.ocr.rendered_page import RenderedPage
from workers.ocr.result import Block, Word
from workers.ocr.routing import RouteDecision
from workers.ocr.text_layer import TextLayer, layer_line

BOX = Box(10, 10, 50, 20)
MIXED = RouteDecision("mixed", "image_regions", (Box(20, 20, 60, 30),))


def stated(text: str) -> TextLayer:
    corners = np.array([(10, 10), (50, 10), (50, 20), (10, 20)], np.float32)
    return TextLayer((layer_line(text, Quad(corners), (Word(text, BOX),)),), (Block((0,)),))


PIXELS = np.arange(40 * 80 * 3, dtype=np.uint32).astype(np.uint8).reshape(40, 80, 3)
PAGE = RenderedPage(
    page_index=3,
    width_px=80,
    height_px=40,
    dpi=200.0,
    rotation_deg=0,
    render_s=0.5,
    decision=MIXED,
    pixels=PIXELS,
    layer=stated("one"),
)


def test_the_same_page_elsewhere_is_the_same() -> None:
    again = replace(PAGE, page_index=0, render_s=9.0, pixels=PIXELS.copy())

    assert page_digest(again) == page_digest(PAGE)


def test_pixels_count_by_what_they_show_and_not_by_how_they_lie_in_memory() -> None:
    wider = np.zeros((40, 160, 3), np.uint8)
    wider[:, ::2] = PIXELS

    assert page_digest(replace(PAGE, pixels=wider[:, ::2])) == page_digest(PAGE)


@pytest.mark.parametrize(
    "change",
    [
        {"dpi": 201.0},
        {"rotation_deg": 90},
        {"width_px": 40, "height_px": 80, "pixels": PIXELS.reshape(80, 40, 3)},
        {"pixels": PIXELS ^ 1},
        {"layer": stated("two")},
        {"decision": RouteDecision("ocr", "invisible_text")},
        {"decision": RouteDecision("mixed", "image_regions", (Box(20, 20, 61, 30),))},
    ],
    ids="-".join,
)
def test_whatever_its_text_follows_from_makes_another_page(change: dict[str, Any]) -> None:
    assert page_digest(replace(PAGE, **change)) != page_digest(PAGE)
