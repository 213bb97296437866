"""PDFs of one page that is a scan stored as JPEG, as they are and as they should not be."""

import io
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from tests.support.pdf_files import assemble_pdf, stream

PAGE_PT = (72, 144)
SIZE_PX = (210, 420)
"""Of the scan: 210 dpi over the page."""

UPRIGHT = b"72 0 0 144 0 0"
FILL = b"q %s cm /I Do Q"


def scan_pixels(mode: str = "RGB", size: tuple[int, int] = SIZE_PX) -> NDArray[np.uint8]:
    """Return a scan on which no side looks like another, as soft as a lens is."""
    width, height = size
    paper = Image.new("RGB", size, (240, 236, 225))
    paper.paste((20, 20, 20), (width // 10, height // 20, width // 2, height // 8))
    paper.paste((170, 40, 30), (width * 2 // 3, height // 4, width * 5 // 6, height // 2))
    paper.paste((40, 60, 150), (width // 8, height * 2 // 3, width // 5, height * 9 // 10))
    soft = paper.filter(ImageFilter.GaussianBlur(max(size) / 200))
    return np.asarray(soft.convert(mode))


def jpeg_of(pixels: NDArray[np.uint8], **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", **{"quality": 90, **options})
    return out.getvalue()


def cmyk_jpeg() -> bytes:
    out = io.BytesIO()
    Image.fromarray(scan_pixels()).convert("CMYK").save(out, "JPEG", quality=90)
    return out.getvalue()


def rgb_jpeg() -> bytes:
    """Return a JPEG whose components are red, green and blue, said in an Adobe marker."""
    return jpeg_of(scan_pixels(), keep_rgb=True)


def scan_pdf(
    jpeg: bytes | None = None,
    *,
    content: bytes = FILL % UPRIGHT,
    page: bytes = b"",
    page_pt: tuple[int, int] = PAGE_PT,
    image: bytes = b"/ColorSpace/DeviceRGB",
    size: tuple[int, int] = SIZE_PX,
    resources: bytes = b"",
    more: Sequence[bytes] = (),
) -> bytes:
    """Return a PDF that shows a JPEG as the image /I.

    Args:
        jpeg: None for the scan in color.
        content: of the page.
        page: further entries of its dictionary.
        page_pt: of its MediaBox.
        image: further entries of the image's dictionary.
        size: that the dictionary states.
        resources: further entries of the page's resources.
        more: objects from number 6.
    """
    packed = jpeg_of(scan_pixels()) if jpeg is None else jpeg
    stated = b"/Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8%s" % (*size, image)
    if b"/Filter" not in image:
        stated += b"/Filter/DCTDecode"
    return assemble_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Resources<</XObject<</I 4 0 R>>"
            b"/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>%s>>/Contents 5 0 R%s>>"
        )
        % (*page_pt, resources, page),
        b"<<%s/Length %d>>stream\n%s\nendstream" % (stated, len(packed), packed),
        stream(b"", content),
        *more,
    ])


def flated(jpeg: bytes) -> bytes:
    return zlib.compress(jpeg)
