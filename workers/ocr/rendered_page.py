"""One page as it comes from its file: sent on a route, with the pixels and the text for it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from workers.ocr.page_image import PageImage
from workers.ocr.routing import RouteDecision
from workers.ocr.text_layer import TextLayer


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page the way a reader holds it: /Rotate or EXIF orientation is applied already.

    Attributes:
        page_index: 0-based position in the document.
        width_px: of the upright page image, whether it was drawn or not.
        height_px: likewise.
        dpi: resolution of the page image; below the wanted one where the pixel cap asked for it.
        rotation_deg: 0, 90, 180 or 270: how far clockwise the stored page was turned.
        render_s: seconds spent on reading, rendering or decoding.
        decision: the page's route.
        pixels: (H, W, 3) uint8 RGB, page pixels; None on the routes ``text`` and ``blank``.
        layer: what the file states and a reader sees; empty on the routes ``ocr`` and ``blank``.
    """

    page_index: int
    width_px: int
    height_px: int
    dpi: float
    rotation_deg: int
    render_s: float
    decision: RouteDecision
    pixels: NDArray[np.uint8] | None = None
    layer: TextLayer = field(default_factory=TextLayer)

    @property
    def image(self) -> PageImage:
        """The page as pixels.

        Raises:
            ValueError: its route needs none, so it has none.
        """
        if self.pixels is None:
            raise ValueError(f"page index {self.page_index} was not drawn")
        return PageImage(self.page_index, self.pixels, self.dpi, self.rotation_deg, self.render_s)


def from_image(image: PageImage, decision: RouteDecision) -> RenderedPage:
    """Make a page of its image; without the pixels where the route needs none."""
    return RenderedPage(
        page_index=image.page_index,
        width_px=image.width_px,
        height_px=image.height_px,
        dpi=image.dpi,
        rotation_deg=image.rotation_deg,
        render_s=image.render_s,
        decision=decision,
        pixels=image.pixels if decision.route in {"ocr", "mixed"} else None,
    )
