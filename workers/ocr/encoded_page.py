"""A page image as a file, in the frame that the polygons of its result are in."""

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from workers.ocr.errors import PageTooLargeError
from workers.ocr.orientation import QUARTER_TURNS
from workers.ocr.page_image import PageImage
from workers.ocr.upright import turned_page

MEDIA_TYPE: Final = "image/jpeg"
# Text keeps its edges; a page of 200 dpi takes 200 to 600 KB.
_JPEG_QUALITY: Final = 85


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Where a page's result is: ``width_px`` by ``height_px``, turned clockwise by so much."""

    width_px: int
    height_px: int
    rotation_deg: int


def encode_page(image: PageImage, frame: PageFrame | None) -> bytes:
    """Return a JPEG of a page.

    Args:
        image: as the file says it stands.
        frame: of its result; the page is turned and resized to it where it was read turned, or at
            less than its own resolution. None: as it is.

    Raises:
        PageTooLargeError: no JPEG can be as long or as wide.
    """
    if frame is not None:
        missing_deg = frame.rotation_deg - image.rotation_deg
        image = turned_page(image, missing_deg * QUARTER_TURNS // 360)
    pixels = image.pixels
    if frame is not None and (image.width_px, image.height_px) != (frame.width_px, frame.height_px):
        size = (frame.width_px, frame.height_px)
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    is_encoded, encoded = cv2.imencode(
        ".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
    )
    if not is_encoded:
        height_px, width_px = pixels.shape[:2]
        raise PageTooLargeError(f"no JPEG has {width_px} x {height_px} pixels")
    return encoded.tobytes()
