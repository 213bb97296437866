"""One upright page as pixels, and one page that could not be had."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page the way a reader holds it: /Rotate or EXIF orientation is applied already.

    Attributes:
        page_index: 0-based position in the document.
        pixels: (H, W, 3) uint8 RGB, page pixels.
        dpi: resolution of ``pixels``; see ``workers.ocr.rendered_page.RenderedPage``.
        rotation_deg: 0, 90, 180 or 270: how far clockwise the stored page was turned.
        render_s: seconds spent on rendering or decoding, for the result's usage.
    """

    page_index: int
    pixels: NDArray[np.uint8]
    dpi: float
    rotation_deg: int = 0
    render_s: float = 0.0

    @property
    def width_px(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def height_px(self) -> int:
        return int(self.pixels.shape[0])


@dataclass(frozen=True, slots=True)
class PageFailure:
    """The recorded failure of one page: ``code`` from the error table, ``message`` for a user."""

    page_index: int
    code: str
    message: str
