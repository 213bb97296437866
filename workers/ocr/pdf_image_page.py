"""Pages of a PDF that are one image and nothing else, and how the image becomes the page.

Pure decisions over sizes and a matrix; ``workers.ocr.pdf`` finds such pages, and
``workers.ocr.raster`` decodes the image.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import Box
from workers.ocr.layer_evidence import Frame

_PT_PER_INCH: Final = 72
# What the image's edges may be off the page's, and its corners off where the stated dpi has them:
# a pixel and a half at 200 dpi. Producers round the size of a page to whole points.
_TOLERANCE_PT: Final = 0.5
# By how much a JPEG can be shrunk while it is decoded, the strongest first.
_REDUCTIONS: Final = (8, 4, 2, 1)
# So much of the wanted resolution is as good as all of it: 1653 pixels over A4 are 199.9 dpi.
_ENOUGH: Final = 0.98
# More pixels than this cost the stages after rendering more than taking them as they are saves.
_MAX_EXCESS: Final = 1.25


class Matrix(NamedTuple):
    """x' = a x + c y + e and y' = b x + d y + f."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float


@dataclass(frozen=True, slots=True)
class PlacedImage:
    """An image on a page.

    Attributes:
        width_px: of the stored image.
        height_px: likewise.
        is_gray: one component a pixel, else three.
        matrix: from the unit square, the image's top left corner at its origin, to the upright
            page, points from the top left.
    """

    width_px: int
    height_px: int
    is_gray: bool
    matrix: Matrix


@dataclass(frozen=True, slots=True)
class ImagePage:
    """How an image becomes its page.

    Attributes:
        frame: size and resolution of the upright page image.
        reduction: 1, 2, 4 or 8: by how much the image is shrunk while it is decoded.
        resized_to: width and height to which it is shrunk then, as it is stored; None for not.
        is_transposed: rows of the image are columns of the page.
        is_flipped_x: then mirrored left to right.
        is_flipped_y: then mirrored top to bottom.
    """

    frame: Frame
    reduction: int
    resized_to: tuple[int, int] | None
    is_transposed: bool
    is_flipped_x: bool
    is_flipped_y: bool

    def upright(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Turn the decoded image as the page shows it.

        Args:
            pixels: (H, W, 3) uint8 RGB as stored, in the size for this page.
        """
        if self.is_transposed:
            pixels = pixels.transpose(1, 0, 2)
        if self.is_flipped_x:
            pixels = pixels[:, ::-1]
        if self.is_flipped_y:
            pixels = pixels[::-1]
        return np.ascontiguousarray(pixels)


def covers(box: Box, page: Box) -> bool:
    """Whether nothing of a page lies outside a box, but for a sliver; points."""
    return (
        box.x_min <= page.x_min + _TOLERANCE_PT
        and box.y_min <= page.y_min + _TOLERANCE_PT
        and box.x_max >= page.x_max - _TOLERANCE_PT
        and box.y_max >= page.y_max - _TOLERANCE_PT
    )


def as_page(image: PlacedImage, page: Box, *, rendered: Frame, max_pixels: int) -> ImagePage | None:
    """Decide whether an image's own pixels serve as the page's, and in which size.

    They are kept where their resolution, halved as often as it goes, is about the wanted one. With
    a higher one a gray image is shrunk; for a color image rendering does that as quickly.

    Args:
        image: the only thing on the page, opaque.
        page: the upright page from (0, 0), points.
        rendered: what the page would be rendered to, at the wanted resolution.
        max_pixels: what is decoded has at most this many.

    Returns:
        None where the page has to be rendered: the image is not the page exactly, it is skewed,
        its pixels are not square, or their number does not suit.
    """
    a, b, c, d, _, _ = image.matrix
    is_straight = max(abs(b), abs(c)) <= _TOLERANCE_PT
    is_skewed = not is_straight and max(abs(a), abs(d)) > _TOLERANCE_PT
    if is_skewed or not _is_same_box(_placed_box(image.matrix), page):
        return None
    stored = (image.width_px, image.height_px)
    width_px, height_px = stored if is_straight else stored[::-1]
    own_dpi = _dpi_of(width_px, height_px, page)
    if own_dpi is None or own_dpi < _ENOUGH * rendered.dpi:
        return None
    reduction = next(by for by in _REDUCTIONS if by == 1 or own_dpi / by >= _ENOUGH * rendered.dpi)
    frame = Frame(own_dpi / reduction, -(-width_px // reduction), -(-height_px // reduction))
    if frame.width_px * frame.height_px > max_pixels:
        return None
    is_resized = frame.dpi > _MAX_EXCESS * rendered.dpi
    if is_resized and not image.is_gray:
        return None
    upright_size = (rendered.width_px, rendered.height_px)
    return ImagePage(
        frame=rendered if is_resized else frame,
        reduction=reduction,
        resized_to=(upright_size if is_straight else upright_size[::-1]) if is_resized else None,
        is_transposed=not is_straight,
        is_flipped_x=(a if is_straight else c) < 0,
        is_flipped_y=(d if is_straight else b) < 0,
    )


def _placed_box(matrix: Matrix) -> Box:
    a, b, c, d, e, f = matrix
    return Box(
        e + min(a, 0) + min(c, 0),
        f + min(b, 0) + min(d, 0),
        e + max(a, 0) + max(c, 0),
        f + max(b, 0) + max(d, 0),
    )


def _is_same_box(box: Box, page: Box) -> bool:
    return covers(box, page) and covers(page, box)


def _dpi_of(width_px: int, height_px: int, page: Box) -> float | None:
    """Return the resolution on both axes; None where one number does not tell it."""
    x_dpi = width_px * _PT_PER_INCH / page.x_max
    y_dpi = height_px * _PT_PER_INCH / page.y_max
    dpi = (x_dpi + y_dpi) / 2
    error_pt = max(
        abs(width_px * _PT_PER_INCH / dpi - page.x_max),
        abs(height_px * _PT_PER_INCH / dpi - page.y_max),
    )
    return dpi if error_pt <= _TOLERANCE_PT else None
