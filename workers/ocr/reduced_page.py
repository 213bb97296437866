"""A page at half its resolution: the last thing that is tried with one that nobody could read."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import cv2
import numpy as np

from workers.ocr.page_image import PageFailure
from workers.ocr.rendered_page import RenderedPage
from workers.ocr.result import PageResult

REDUCTION: Final = 2
WARNING: Final = "reduced_resolution"


def reduce_image_page(page: RenderedPage) -> RenderedPage:
    """Halve both sides of a page of an image file; a PDF page is rendered smaller instead.

    Args:
        page: without lines of its own, as the pages of image files are.
    """
    size = (max(page.width_px // REDUCTION, 1), max(page.height_px // REDUCTION, 1))
    pixels = page.pixels
    if pixels is not None:
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    return replace(
        page, width_px=size[0], height_px=size[1], dpi=page.dpi / REDUCTION, pixels=pixels
    )


def warn_of_reduction(
    outcomes: Iterator[PageResult | PageFailure],
) -> Iterator[PageResult | PageFailure]:
    """Let every result say that it was read at half the resolution."""
    for outcome in outcomes:
        if isinstance(outcome, PageResult):
            yield replace(outcome, warnings=(*outcome.warnings, WARNING))
        else:
            yield outcome
