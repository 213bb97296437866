"""What a page's text layer is worth: held against the page's ink, images and fonts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Box
from workers.ocr.layer_lines import PdfLine, read_lines, to_text_line
from workers.ocr.layer_order import order_layer
from workers.ocr.line_pieces import join_pieces
from workers.ocr.modes import TextOrder
from workers.ocr.page_ink import INK_DPI, inked_regions, is_seen, letter_shapes
from workers.ocr.routing import TEXT_OPERATIONS, LayerEvidence
from workers.ocr.text_layer import TextLayer

_PT_PER_INCH: Final = 72
# An image hides text when it covers this share of what the text operation drew.
_HIDING_SHARE: Final = 0.8
# Smaller images are bullets, icons and rules.
_MIN_REGION_SIDE_PT: Final = 12.0
_MIN_REGION_AREA_PT: Final = 600.0
# A picture of fewer pixels is a color or a gradient, stretched.
_MIN_IMAGE_PIXELS: Final = 64
# Scans are stored in strips and tiles, whose edges meet within this.
_TILE_GAP_PT: Final = 1.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The upright page image that results speak of, drawn or not."""

    dpi: float
    width_px: int
    height_px: int

    @property
    def zoom(self) -> float:
        """Page pixels per pt."""
        return self.dpi / _PT_PER_INCH


@dataclass(frozen=True, slots=True)
class DrawnImage:
    """An image on a page: pt of the upright page, and how many pixels it has."""

    box: Box
    pixel_count: int
    is_opaque: bool


@dataclass(frozen=True, slots=True)
class PageContents:
    """What a PDF page says about itself, before any judgment.

    Attributes:
        raw: structured text with a place for each character, pt of the upright page.
        drawn: kind and box of each drawing operation, in their order, pt likewise.
        images: in any order.
        unmapped_fonts: names of fonts that do not say which characters their codes are.
    """

    raw: Mapping[str, Any]
    drawn: Sequence[tuple[str, Box]]
    images: Sequence[DrawnImage]
    unmapped_fonts: Collection[str]


def stated_layer(
    contents: PageContents, frame: Frame, text_order: TextOrder = "reading"
) -> TextLayer:
    """Return all that a page states, whether it can be seen or not."""
    return _layer(join_pieces(read_lines(contents.raw)), frame, text_order)


def weigh_layer(
    contents: PageContents,
    gray: NDArray[np.uint8],
    ink_dpi: float,
    frame: Frame,
    text_order: TextOrder = "reading",
) -> tuple[LayerEvidence, TextLayer]:
    """Hold a layer against the page, and return what shows of it.

    Args:
        contents: of the page.
        gray: (H, W) uint8, the upright page at ``ink_dpi``.
        ink_dpi: at most ``INK_DPI``.
        frame: of the layer that is returned.
        text_order: likewise.
    """
    ink_zoom = ink_dpi / _PT_PER_INCH
    lines = join_pieces(read_lines(contents.raw))
    visible = [line for line in lines if line.is_visible]
    seen = [line for line in visible if is_seen(gray, _scaled(line.box, ink_zoom))]
    boxes = [_scaled(_inked_box(line), ink_zoom) for line in seen]
    images = [_scaled(image.box, ink_zoom) for image in contents.images]
    regions = inked_regions(
        gray, [_scaled(box, ink_zoom) for box in image_regions(contents.images)], boxes
    )
    text = "\n".join(line.text for line in seen)
    drawn = sum(line.character_count for line in visible)
    to_page = frame.dpi / ink_dpi
    evidence = LayerEvidence(
        text=text,
        invisible=sum(line.character_count for line in lines if not line.is_visible),
        unmapped=_unmapped_characters(contents),
        inkless=drawn - sum(line.character_count for line in seen),
        under_image=round(drawn * _hidden_share(contents)),
        # A page so large that its ink is looked at from farther off shows no letters.
        unexplained_shapes=letter_shapes(gray, [*boxes, *images]) if ink_dpi == INK_DPI else 0,
        regions=tuple(_on_page(_scaled(region, to_page), frame) for region in regions),
    )
    return evidence, _layer(seen, frame, text_order)


def image_regions(images: Sequence[DrawnImage]) -> list[Box]:
    """Return where images are that may hold text, tiles of one picture taken together, pt."""
    merged: list[Box] = []
    for image in images:
        if image.pixel_count < _MIN_IMAGE_PIXELS:
            continue
        region = image.box
        while (other := _touching(region, merged)) is not None:
            merged.remove(other)
            region = _union(region, other)
        merged.append(region)
    regions = [
        box
        for box in merged
        if min(box.width, box.height) >= _MIN_REGION_SIDE_PT
        and box.width * box.height >= _MIN_REGION_AREA_PT
    ]
    return sorted(regions, key=lambda box: (box.y_min, box.x_min, box.y_max, box.x_max))


def _layer(lines: Sequence[PdfLine], frame: Frame, text_order: TextOrder) -> TextLayer:
    placed = [
        (text_line, line.block)
        for line in lines
        if (
            text_line := to_text_line(
                line, zoom=frame.zoom, width_px=frame.width_px, height_px=frame.height_px
            )
        )
        is not None
    ]
    return order_layer([line for line, _ in placed], [block for _, block in placed], text_order)


def _inked_box(line: PdfLine) -> Box:
    """Return where a line's ink is: in vertical lines marks stand beside the characters' boxes."""
    box = line.box
    if not line.is_vertical:
        return box
    margin = line.size_pt / 2
    return Box(box.x_min - margin, box.y_min - margin, box.x_max + margin, box.y_max + margin)


def _unmapped_characters(contents: PageContents) -> int:
    if not contents.unmapped_fonts:
        return 0
    return sum(
        not char["c"].isspace()
        for block in contents.raw["blocks"]
        for line in block.get("lines", ())
        for span in line["spans"]
        if span["font"] in contents.unmapped_fonts
        for char in span["chars"]
    )


def _hidden_share(contents: PageContents) -> float:
    """Return which share of the text operations an opaque image covers that is drawn later."""
    opaque = [image.box for image in contents.images if image.is_opaque]
    texts = hidden = 0
    covers: list[Box] = []
    for kind, box in reversed(contents.drawn):
        if kind == "fill-image" and any(
            _covered_share(box, each) > _HIDING_SHARE for each in opaque
        ):
            covers.append(box)
        elif kind in TEXT_OPERATIONS:
            texts += 1
            hidden += any(_covered_share(box, cover) > _HIDING_SHARE for cover in covers)
    return hidden / texts if texts else 0.0


def _covered_share(box: Box, cover: Box) -> float:
    width = min(box.x_max, cover.x_max) - max(box.x_min, cover.x_min)
    height = min(box.y_max, cover.y_max) - max(box.y_min, cover.y_min)
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / (box.width * box.height)


def _touching(box: Box, others: Sequence[Box]) -> Box | None:
    for other in others:
        if (
            box.x_min <= other.x_max + _TILE_GAP_PT
            and other.x_min <= box.x_max + _TILE_GAP_PT
            and box.y_min <= other.y_max + _TILE_GAP_PT
            and other.y_min <= box.y_max + _TILE_GAP_PT
        ):
            return other
    return None


def _union(box: Box, other: Box) -> Box:
    return Box(
        min(box.x_min, other.x_min),
        min(box.y_min, other.y_min),
        max(box.x_max, other.x_max),
        max(box.y_max, other.y_max),
    )


def _scaled(box: Box, factor: float) -> Box:
    return Box(box.x_min * factor, box.y_min * factor, box.x_max * factor, box.y_max * factor)


def _on_page(box: Box, frame: Frame) -> Box:
    return Box(
        min(max(box.x_min, 0.0), frame.width_px),
        min(max(box.y_min, 0.0), frame.height_px),
        min(max(box.x_max, 0.0), frame.width_px),
        min(max(box.y_max, 0.0), frame.height_px),
    )
