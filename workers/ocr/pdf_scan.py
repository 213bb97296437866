"""PDF pages that are one JPEG: found by watching them drawn, decoded from their own bytes.

A part of the door to PyMuPDF, beside ``workers.ocr.pdf``; in which size such a page is taken is
``workers.ocr.pdf_image_page``'s to decide.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pymupdf
from numpy.typing import NDArray
from pymupdf import mupdf

from workers.ocr.errors import DamagedPageError
from workers.ocr.geometry import Box
from workers.ocr.layer_evidence import Frame
from workers.ocr.pdf_image_page import ImagePage, Matrix, PlacedImage, as_page, covers
from workers.ocr.raster import decode_jpeg

# Some writers give every page the images of all pages.
_MAX_SHARED_XOBJECTS: Final = 64


@dataclass(frozen=True, slots=True)
class Scan:
    """A JPEG that is a page."""

    image: mupdf.FzImage
    page: ImagePage

    def pixels(self) -> NDArray[np.uint8] | None:
        """Return the upright page as (H, W, 3) uint8 RGB; None where MuPDF may know better."""
        content = mupdf.ll_fz_compressed_image_buffer(self.image.m_internal).buffer
        try:
            stored = decode_jpeg(
                mupdf.ll_fz_buffer_extract_copy(content),
                size=(self.image.w(), self.image.h()),
                component_count=self.image.n(),
                reduction=self.page.reduction,
                resized_to=self.page.resized_to,
            )
        except DamagedPageError:
            return None
        return self.page.upright(stored)


def find_scan(page: pymupdf.Page, rendered: Frame, max_pixels: int) -> Scan | None:
    """Return the JPEG that is the page; None where the page is anything else."""
    found = _lone_image(page)
    if found is None:
        return None
    image, matrix = found
    image_page = as_page(
        PlacedImage(image.w(), image.h(), image.n() == 1, matrix),
        _box_of(page),
        rendered=rendered,
        max_pixels=max_pixels,
    )
    if image_page is None or not _is_color_as_usual(page, image):
        return None
    return Scan(image, image_page)


class _LoneImageDevice(mupdf.FzDevice2):  # type: ignore[misc]  # PyMuPDF has no types
    """Watches a page being drawn, for as long as it may be one opaque image and nothing else.

    Attributes:
        found: the image and its place; None while there is none, and for good where there is more.
    """

    def __init__(self, page: Box, cookie: mupdf.FzCookie) -> None:
        super().__init__()
        self.found: tuple[mupdf.FzImage, Matrix] | None = None
        self._page = page
        self._cookie = cookie
        self._has_more = False
        for operation in vars(_LoneImageDevice):
            if not operation.startswith("_"):
                getattr(self, f"use_virtual_{operation}")()

    def fill_image(
        self,
        _context: object,
        image: mupdf.fz_image,
        matrix: mupdf.fz_matrix,
        alpha: float,
        *_: object,
    ) -> None:
        kept = mupdf.FzImage(mupdf.ll_fz_keep_image(image))
        if self._has_more or self.found is not None or alpha != 1 or not _is_plain_jpeg(kept):
            self._give_up()
            return
        self.found = kept, Matrix(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)

    def clip_path(
        self, _context: object, path: object, _even_odd: int, matrix: mupdf.fz_matrix, *_: object
    ) -> None:
        # Most writers clip to the page.
        clip = mupdf.ll_fz_bound_path(path, None, matrix)
        is_around = covers(Box(clip.x0, clip.y0, clip.x1, clip.y1), self._page)
        if not (is_around and mupdf.ll_fz_path_is_rect(path, matrix)):
            self._give_up()

    def begin_group(
        self,
        _context: object,
        _area: object,
        colorspace: mupdf.fz_colorspace | None,
        _isolated: int,
        _knockout: int,
        blend_mode: int,
        alpha: float,
    ) -> None:
        # Others wrap the page in a group that changes nothing.
        is_rgb = colorspace is None or mupdf.ll_fz_colorspace_is_rgb(colorspace)
        if not is_rgb or blend_mode != mupdf.FZ_BLEND_NORMAL or alpha != 1:
            self._give_up()

    def _give_up(self, *_: object) -> None:
        self.found, self._has_more = None, True
        self._cookie.set_abort()

    fill_path = stroke_path = fill_text = stroke_text = fill_shade = _give_up
    fill_image_mask = clip_stroke_path = clip_text = clip_stroke_text = _give_up
    clip_image_mask = begin_mask = begin_tile = _give_up


def _lone_image(page: pymupdf.Page) -> tuple[mupdf.FzImage, Matrix] | None:
    """Return the JPEG that is all that the page draws; hidden text and empty layers may be there.

    Drawing stops with the first operation that is something else.
    """
    cookie = mupdf.FzCookie()
    device = _LoneImageDevice(_box_of(page), cookie)
    mupdf.fz_run_page(page.this, device, mupdf.FzMatrix(), cookie)
    mupdf.fz_close_device(device)
    return None if cookie.errors() else device.found


def _is_plain_jpeg(image: mupdf.FzImage) -> bool:
    """Whether an image is a JPEG of 8 bits in gray or RGB that is shown as it is stored."""
    if image.fz_compressed_image_type() != mupdf.FZ_IMAGE_JPEG or image.bpc() != 8:  # noqa: PLR2004 - bits
        return False
    colorspace = image.colorspace()
    is_gray_or_rgb = colorspace.m_internal and (
        mupdf.fz_colorspace_is_gray(colorspace) or mupdf.fz_colorspace_is_rgb(colorspace)
    )
    is_changed = image.imagemask() or image.use_decode() or image.use_colorkey()
    return bool(is_gray_or_rgb) and not is_changed and not image.mask().m_internal


def _is_color_as_usual(page: pymupdf.Page, image: mupdf.FzImage) -> bool:
    """Whether the file leaves it to the JPEG how its colors are meant; in doubt it does not.

    /ColorTransform stands beside the JPEG, and MuPDF keeps what it says to itself.
    """
    if image.n() == 1:
        return True
    resources = mupdf.pdf_page_resources(mupdf.pdf_page_from_fz_page(page.this))
    xobjects = mupdf.pdf_dict_gets(resources, "XObject")
    count = mupdf.pdf_dict_len(xobjects)
    if count > _MAX_SHARED_XOBJECTS:
        return False
    stated = [mupdf.pdf_dict_get_val(xobjects, index) for index in range(count)]
    sizes = [[_integer(xobject, side) for side in ("Width", "Height")] for xobject in stated]
    return [image.w(), image.h()] in sizes and not any(map(_has_color_transform, stated))


def _integer(dictionary: mupdf.PdfObj, key: str) -> int:
    return int(mupdf.pdf_to_int(mupdf.pdf_dict_gets(dictionary, key)))


def _has_color_transform(xobject: mupdf.PdfObj) -> bool:
    stated = mupdf.pdf_dict_gets(xobject, "DecodeParms")
    each = [mupdf.pdf_array_get(stated, index) for index in range(mupdf.pdf_array_len(stated))]
    return any(
        mupdf.pdf_dict_gets(parameters, "ColorTransform").m_internal
        for parameters in (stated, *each)
    )


def _box_of(page: pymupdf.Page) -> Box:
    """Return the upright page, points."""
    return Box(0, 0, page.rect.width, page.rect.height)
