"""Layouts that no file of the corpus has: their lines alone, no recognition."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.page_layouts import LAYOUTS, Sheet
from workers.ocr.geometry import Quad, rotate_points
from workers.ocr.order import order_lines


def lines_read(sheet: Sheet, *, skew_deg: float = 0) -> list[int]:
    """Return the order in which a sheet's lines are read, found in any order."""
    quads = sheet.quads()
    found = np.random.default_rng(sheet.seed).permutation(len(quads))
    turned = [
        Quad((rotate_points(quads[line].corners, skew_deg)).astype(np.float32)) for line in found
    ]
    return [int(found[position]) for position in order_lines(turned).lines]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_a_layout_is_read_as_a_person_would(layout: Callable[[Sheet], None], seed: int) -> None:
    sheet = Sheet(seed)
    layout(sheet)

    assert lines_read(sheet) == list(range(len(sheet.lines)))


@pytest.mark.parametrize("skew_deg", [-2.0, 1.5])
@pytest.mark.parametrize("layout", LAYOUTS[:6], ids=lambda layout: layout.__name__)
def test_a_skewed_page_is_read_in_the_same_order(
    layout: Callable[[Sheet], None], skew_deg: float
) -> None:
    sheet = Sheet(0)
    layout(sheet)

    assert lines_read(sheet, skew_deg=skew_deg) == list(range(len(sheet.lines)))
