"""Pages whose text is partly stated and partly in images: recognize the images, keep the rest.

What the file states is painted over before recognition, so that no word comes twice.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Box, Quad, unturned_points
from workers.ocr.layer_order import insert_blocks
from workers.ocr.page_image import PageImage
from workers.ocr.rendered_page import RenderedPage
from workers.ocr.result import PageResult, TextLine, Word

# A detector needs some paper around a line.
_MARGIN_PX: Final = 8
# Letters reach a little over their box.
_MASK_MARGIN_PX: Final = 1
# A recognized line that lies so far inside stated words is their shadow.
_DOUBLE_SHARE: Final = 0.5


def masked_crop(page: RenderedPage) -> PageImage:
    """Return the part of a page that holds its image regions, without the words it states."""
    crop = _crop_box(page)
    pixels = page.image.pixels.copy()
    for line in page.layer.lines:
        for word in line.words:
            _paint_over(pixels, word.box)
    return replace(
        page.image,
        pixels=pixels[crop[1] : crop[3], crop[0] : crop[2]].copy(),
    )


def merge_recognized(page: RenderedPage, recognized: PageResult) -> PageResult:
    """Put what was recognized in a page's images between what the page states.

    Args:
        page: on the route ``mixed``; its pixels are not needed any more.
        recognized: of ``masked_crop``; lines of one that was turned upright are turned back,
            because what the page states says how it stands.
    """
    left, top, _, _ = _crop_box(page)
    stated = [word.box for line in page.layer.lines for word in line.words]
    lines = [_placed(line, recognized, page.rotation_deg, left, top) for line in recognized.lines]
    blocks = [
        kept
        for block in recognized.blocks
        if (
            kept := [
                lines[position]
                for position in block.lines
                if _stated_share(lines[position].quad.box, stated) < _DOUBLE_SHARE
            ]
        )
    ]
    layer = insert_blocks(page.layer, blocks)
    return replace(
        recognized,
        width_px=page.width_px,
        height_px=page.height_px,
        rotation_deg=page.rotation_deg,
        lines=layer.lines,
        blocks=layer.blocks,
        route="mixed",
        route_reason=page.decision.reason,
    )


def _crop_box(page: RenderedPage) -> tuple[int, int, int, int]:
    regions = page.decision.regions
    return (
        max(int(min(box.x_min for box in regions)) - _MARGIN_PX, 0),
        max(int(min(box.y_min for box in regions)) - _MARGIN_PX, 0),
        min(int(np.ceil(max(box.x_max for box in regions))) + _MARGIN_PX, page.width_px),
        min(int(np.ceil(max(box.y_max for box in regions))) + _MARGIN_PX, page.height_px),
    )


def _paint_over(pixels: NDArray[np.uint8], box: Box) -> None:
    """Fill a word's box with the color that most of its edge has."""
    height, width = pixels.shape[:2]
    left = max(int(box.x_min) - _MASK_MARGIN_PX, 0)
    top = max(int(box.y_min) - _MASK_MARGIN_PX, 0)
    right = min(int(np.ceil(box.x_max)) + _MASK_MARGIN_PX, width)
    bottom = min(int(np.ceil(box.y_max)) + _MASK_MARGIN_PX, height)
    if left >= right or top >= bottom:
        return
    part = pixels[top:bottom, left:right]
    edge = np.concatenate((part[0], part[-1], part[:, 0], part[:, -1]))
    part[...] = np.median(edge, axis=0).astype(np.uint8)


def _placed(line: TextLine, crop: PageResult, rotation_deg: int, left: int, top: int) -> TextLine:
    """Map a line of the recognized crop to its page."""

    def on_page(points: NDArray[np.float32]) -> NDArray[np.float32]:
        was = unturned_points(
            points,
            (crop.rotation_deg - rotation_deg) // 90,
            width_px=crop.width_px,
            height_px=crop.height_px,
        )
        return was + np.array([left, top], dtype=np.float32)

    def box_on_page(box: Box) -> Box:
        ends = on_page(np.array([(box.x_min, box.y_min), (box.x_max, box.y_max)], np.float32))
        return Box(*ends.min(axis=0).tolist(), *ends.max(axis=0).tolist())

    return replace(
        line,
        quad=Quad(on_page(line.quad.corners)),
        words=tuple(Word(word.text, box_on_page(word.box)) for word in line.words),
    )


def _stated_share(box: Box, stated: list[Box]) -> float:
    """Return which share of a box lies in words that the file states."""
    shared = sum(
        max(min(box.x_max, word.x_max) - max(box.x_min, word.x_min), 0.0)
        * max(min(box.y_max, word.y_max) - max(box.y_min, word.y_min), 0.0)
        for word in stated
    )
    return shared / max(box.width * box.height, 1e-6)
