"""The door to Pillow: scans and photographs as upright page images."""

import io
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from workers.ocr.errors import (
    DamagedPageError,
    OcrError,
    PageTooLargeError,
    UnreadableDocumentError,
    UnsupportedMediaTypeError,
)
from workers.ocr.exports.pdf_writer import EncodedImage
from workers.ocr.formats import MediaType
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.page_image import PageImage
from workers.ocr.page_ink import has_ink
from workers.ocr.rendered_page import RenderedPage, from_image
from workers.ocr.routing import RouteDecision
from workers.ocr.tiff_frames import FrameFile, page_offsets

FALLBACK_DPI: Final = 200.0
"""Said of an image that declares no plausible resolution; the default of ``OcrOptions.dpi``."""

_PLAUSIBLE_DPI: Final = (50.0, 1200.0)
# Fax has 204 x 98 and 204 x 196 dpi: the first must be stretched to be read, the second reads as
# well without a blurring resampling.
_MAX_ASPECT_ERROR: Final = 1.05
# Of page images in a PDF: what a lossy scan loses again cannot be seen.
_JPEG_QUALITY: Final = 85
_JPEG_REDUCTIONS: Final = (2, 4, 8)
# libwebp takes the memory for the whole canvas with the header, so Pillow looks at the size before.
_MAX_WEBP_PIXELS: Final = 2 * (Image.MAX_IMAGE_PIXELS or 0)

# Named, instead of Image.open: that one also loads plugins by the file's name, and has a pixel cap
# of its own, which comes before a JPEG can be asked for less.
_READERS: Final[dict[MediaType, type[ImageFile.ImageFile]]] = {
    MediaType.PNG: PngImageFile,
    MediaType.JPEG: JpegImageFile,
    MediaType.TIFF: TiffImageFile,
    MediaType.WEBP: WebPImageFile,
    MediaType.BMP: BmpImageFile,
}
# Components of a JPEG.
_GRAY: Final = 1
# An Adobe marker that says so, and the usual meaning of a JPEG without one.
_IS_YCC: Final = 1
_RGB_COMPONENT_IDS: Final = [ord(name) for name in "RGB"]
# EXIF orientation → (how the stored image is turned upright, degrees clockwise in that).
_TURNS: Final = {
    2: (Image.Transpose.FLIP_LEFT_RIGHT, 0),
    3: (Image.Transpose.ROTATE_180, 180),
    4: (Image.Transpose.FLIP_TOP_BOTTOM, 180),
    5: (Image.Transpose.TRANSPOSE, 270),
    6: (Image.Transpose.ROTATE_270, 90),
    7: (Image.Transpose.TRANSVERSE, 90),
    8: (Image.Transpose.ROTATE_90, 270),
}
_FIRST_SIDEWAYS_ORIENTATION: Final = 5


class RasterSource:
    """An image file, every page of a TIFF a page; see ``workers.ocr.sources.PageSource``.

    ``workers.ocr.tiff_frames`` says which frames of a TIFF are pages. An animated PNG or WebP is
    refused: reading its first picture alone would lose the others in silence. ``PageImage.dpi`` is
    the declared resolution where it lies in 50 to 1200, else 200; where the axes differ, the finer
    one.
    """

    def __init__(self, path: Path, *, media_type: MediaType, max_pages: int) -> None:
        """Read the headers.

        Args:
            path: the file.
            media_type: what its content is; no other decoder is tried.
            max_pages: the search for pages may end above it.

        Raises:
            UnreadableDocumentError: the headers are damaged.
            UnsupportedMediaTypeError: the image is animated.
        """
        self.media_type = media_type
        self._path = path
        self._tiff_offsets: list[int] = []
        with _translated(UnreadableDocumentError, "The image's header is damaged. Scan it again."):
            if media_type is MediaType.TIFF:
                with path.open("rb") as stream:
                    self._tiff_offsets = page_offsets(stream, max_pages=max_pages)
            self.page_count = max(len(self._tiff_offsets), 1)
            # Too large is the page and not the document, and is said when it is asked for.
            with suppress(PageTooLargeError), self._open(0) as image:
                _require_still(image)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Nothing stays open between pages."""

    @contextmanager
    def _open(self, page_index: int) -> Iterator[ImageFile.ImageFile]:
        """Read the headers of a page.

        Raises:
            PageTooLargeError: a WebP of more pixels than Pillow opens.
        """
        with ExitStack() as opened:
            source: Path | FrameFile = self._path
            if self._tiff_offsets:
                source = opened.enter_context(FrameFile(self._path, self._tiff_offsets[page_index]))
            # A text or color profile of a PNG that unpacks to more than 1 MiB is an error to
            # Pillow, and with this one it is left out. The picture is decoded later, with all
            # errors.
            ImageFile.LOAD_TRUNCATED_IMAGES = self.media_type is MediaType.PNG
            try:
                image = _READERS[self.media_type](source)
            except Image.DecompressionBombError as error:
                raise PageTooLargeError(
                    f"The image has more than {_MAX_WEBP_PIXELS} pixels. Scan it at a lower "
                    "resolution."
                ) from error
            finally:
                ImageFile.LOAD_TRUNCATED_IMAGES = False
            yield opened.enter_context(image)

    def render(
        self,
        page_index: int,
        *,
        dpi: float,  # noqa: ARG002 - the protocol's; an image has its own resolution
        max_pixels: int,
        mode: Mode = "ocr",
        text_order: TextOrder = "reading",  # noqa: ARG002 - the protocol's; an image states no text
    ) -> RenderedPage:
        """Return one upright page; the protocol says more. An image states no text.

        A JPEG over ``max_pixels`` is decoded at a half, a quarter or an eighth of its size. The
        other formats have no cheap smaller version, so their page is refused.

        Raises:
            DamagedPageError: the frame is truncated or cannot be decoded.
            PageTooLargeError: over ``max_pixels``, read from the header before decoding.
            MemoryError: the decoder could not allocate.
        """
        started = time.perf_counter()
        damaged = "The image is damaged or cut off and cannot be decoded. Scan it again."
        with _translated(DamagedPageError, damaged), self._open(page_index) as image:
            orientation = _orientation_of(image)
            x_dpi, y_dpi = _resolution_of(image)
            reduction = _reduce_to_fit(image, max_pixels)
            image.load()
            turned, rotation_deg = _turn_upright(image, orientation)
            if orientation >= _FIRST_SIDEWAYS_ORIENTATION:
                x_dpi, y_dpi = y_dpi, x_dpi
            page = _square_pixels(_to_rgb(turned), x_dpi, y_dpi, max_pixels)
            pixels: NDArray[np.uint8] = np.array(page)
        image_page = PageImage(
            page_index=page_index,
            pixels=pixels,
            dpi=max(x_dpi, y_dpi) / reduction,
            rotation_deg=rotation_deg,
            render_s=time.perf_counter() - started,
        )
        return from_image(image_page, _route(pixels, mode))


def decode_jpeg(
    content: bytes,
    *,
    size: tuple[int, int],
    component_count: int,
    reduction: int = 1,
    resized_to: tuple[int, int] | None = None,
) -> NDArray[np.uint8]:
    """Decode a JPEG that lies in another file; what it says of its orientation is left alone.

    Args:
        content: the bytes.
        size: width and height in pixels that the other file states.
        component_count: likewise: 1 for gray, 3 for color.
        reduction: 1, 2, 4 or 8: sides shrink by it, and are rounded up.
        resized_to: width and height to which the image is shrunk further.

    Returns:
        (H, W, 3) uint8 RGB.

    Raises:
        DamagedPageError: it is truncated, cannot be decoded, is not what the other file says, or
            means its colors in an unusual way.
        MemoryError: the decoder could not allocate.
    """
    damaged = "The image is damaged or cut off and cannot be decoded."
    with _translated(DamagedPageError, damaged), JpegImageFile(io.BytesIO(content)) as image:
        if image.size != size or not _has_plain_colors(image, component_count):
            raise DamagedPageError("The image is not what its file says.")
        width_px, height_px = size
        if reduction > 1:
            image.draft(None, (max(width_px // reduction, 1), max(height_px // reduction, 1)))
        if image.size != (-(-width_px // reduction), -(-height_px // reduction)):
            raise DamagedPageError("The image is too small to be shrunk.")
        image.load()
        page = image if resized_to is None else image.resize(resized_to, Image.Resampling.HAMMING)
        stored: NDArray[np.uint8] = np.array(page)
    return np.repeat(stored[..., None], 3, axis=2) if component_count == _GRAY else stored


def encode_page(pixels: NDArray[np.uint8]) -> EncodedImage:
    """Pack a page image for a PDF: without loss where it is black and white, else as a JPEG.

    Args:
        pixels: (H, W, 3) uint8 RGB.
    """
    height_px, width_px = pixels.shape[:2]
    first = pixels[:, :, 0]
    is_gray = bool((pixels == first[:, :, None]).all())
    if is_gray and bool(((first == 0) | (first == 255)).all()):  # noqa: PLR2004 - white
        content = zlib.compress(np.packbits(first > 0, axis=1).tobytes())
        return EncodedImage(content, "FlateDecode", "DeviceGray", 1, width_px, height_px)
    out = io.BytesIO()
    page = Image.fromarray(first) if is_gray else Image.fromarray(pixels)
    page.save(out, "JPEG", quality=_JPEG_QUALITY)
    color_space = "DeviceGray" if is_gray else "DeviceRGB"
    return EncodedImage(out.getvalue(), "DCTDecode", color_space, 8, width_px, height_px)


def _has_plain_colors(image: JpegImageFile, component_count: int) -> bool:
    """Whether a JPEG is gray or YCbCr, as stated, so that no reader can take it for another."""
    component_ids = [component[0] for component in image.layer]
    if len(component_ids) != component_count:
        return False
    return component_count == _GRAY or (
        image.info.get("adobe_transform", _IS_YCC) == _IS_YCC
        and component_ids != _RGB_COMPONENT_IDS
    )


def _route(pixels: NDArray[np.uint8], mode: Mode) -> RouteDecision:
    if mode == "ocr":
        return RouteDecision("ocr", "mode")
    if mode == "text":
        return RouteDecision("text", "no_layer")
    return (
        RouteDecision("ocr", "image_file") if has_ink(pixels) else RouteDecision("blank", "no_ink")
    )


@contextmanager
def _translated(error_type: type[OcrError], message: str) -> Iterator[None]:
    """Raise Pillow's errors as ours, and keep its warnings about odd metadata to itself.

    Raises:
        OcrError: ours go through as they are, Pillow's become ``error_type``.
        MemoryError: goes through, since it is the process that has to be replaced.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (OcrError, MemoryError):
            raise
        except Exception as error:
            # Not a list of types: hostile bytes make Pillow's decoders raise what they like, seen
            # here as OSError, SyntaxError, TypeError, ValueError, KeyError and struct.error.
            raise error_type(message) from error


def _require_still(image: ImageFile.ImageFile) -> None:
    """Refuse what would be read in part.

    Raises:
        UnsupportedMediaTypeError: a PNG or WebP of several pictures.
    """
    if image.format == "TIFF":
        return  # all of its pages are read
    picture_count = getattr(image, "n_frames", 1)
    if picture_count > 1:
        raise UnsupportedMediaTypeError(
            f"The image is an animation of {picture_count} pictures. Send each as a file, or all "
            "as the pages of a TIFF or PDF."
        )


def _orientation_of(image: Image.Image) -> int:
    """EXIF orientation 1 to 8; 1 where there is none or it cannot be read."""
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # noqa: BLE001 - damaged metadata raises anything, and must not cost the page
        return 1
    return orientation if orientation in _TURNS else 1


def _resolution_of(image: Image.Image) -> tuple[float, float]:
    """Declared dots per inch of the stored axes, or twice ``FALLBACK_DPI``."""
    try:
        x_dpi, y_dpi = (float(value) for value in image.info["dpi"])
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return FALLBACK_DPI, FALLBACK_DPI
    low, high = _PLAUSIBLE_DPI
    # The comparison is also what keeps NaN out.
    if low <= x_dpi <= high and low <= y_dpi <= high:
        return x_dpi, y_dpi
    return FALLBACK_DPI, FALLBACK_DPI


def _reduce_to_fit(image: Image.Image, max_pixels: int) -> int:
    """Make a JPEG decode to at most ``max_pixels``; return by how much its sides shrink.

    Raises:
        PageTooLargeError: it does not fit, and cannot be reduced that far.
    """
    width_px, height_px = image.size
    if width_px * height_px <= max_pixels:
        return 1
    if isinstance(image, JpegImageFile):
        for reduction in _JPEG_REDUCTIONS:
            if -(-width_px // reduction) * -(-height_px // reduction) <= max_pixels:
                image.draft(None, (width_px // reduction, height_px // reduction))
                return reduction
    raise PageTooLargeError(
        f"The image measures {width_px} x {height_px} pixels; the limit is {max_pixels} pixels. "
        "Scan it at a lower resolution, or raise the limit."
    )


def _turn_upright(image: Image.Image, orientation: int) -> tuple[Image.Image, int]:
    if orientation not in _TURNS:
        return image, 0
    turn, rotation_deg = _TURNS[orientation]
    # Pillow turns TIFF frames itself while loading them, and no other format.
    return (image if image.format == "TIFF" else image.transpose(turn)), rotation_deg


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "F" or image.mode.startswith("I"):
        return _deep_grey_to_8_bit(image).convert("RGB")
    if image.has_transparency_data:
        return _flatten(image.convert("RGBA"))
    return image.convert("RGB")


def _deep_grey_to_8_bit(image: Image.Image) -> Image.Image:
    """Scale 16-bit, 32-bit and floating grey by the range in use.

    Integers are divided by a power of two: 10- or 12-bit scans in 16-bit files, which would come
    out nearly black, keep their contrast, and 8-bit ones their values.
    """
    values = np.asarray(image)
    if image.mode == "F":
        finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        low, high = float(finite.min()), float(finite.max())
        grey = ((finite - low) * (255.0 / ((high - low) or 1.0))).astype(np.uint8)
    else:
        positive = np.maximum(values, 0)
        grey = (positive >> max(0, int(positive.max()).bit_length() - 8)).astype(np.uint8)
    if _is_white_zero(image):
        grey = 255 - grey
    return Image.fromarray(grey)


def _is_white_zero(image: Image.Image) -> bool:
    """Whether a TIFF counts from white; Pillow minds that only in up to 8 bits."""
    tags = getattr(image, "tag_v2", {})
    return bool(tags.get(ExifTags.Base.PhotometricInterpretation) == 0)


def _flatten(image: Image.Image) -> Image.Image:
    """Lay a transparent picture on the paper against which its content can be read.

    Paper is white, except for white writing on nothing: where most of the picture is transparent
    and what is drawn is nearer to white than to black.
    """
    opaque = image.getchannel("A").point(lambda alpha: 255 if alpha > 127 else 0)  # noqa: PLR2004 - half of 255
    drawn = image.convert("L").histogram(opaque)
    drawn_count = sum(drawn)
    mean = sum(level * count for level, count in enumerate(drawn)) / max(drawn_count, 1)
    is_mostly_clear = 2 * drawn_count < image.width * image.height
    paper = Image.new("RGBA", image.size, "black" if is_mostly_clear and mean > 127 else "white")  # noqa: PLR2004 - middle of 0 to 255
    paper.alpha_composite(image)
    return paper.convert("RGB")


def _square_pixels(image: Image.Image, x_dpi: float, y_dpi: float, max_pixels: int) -> Image.Image:
    """Stretch the coarser axis, so that a fax is not read at half its height.

    Raises:
        PageTooLargeError: stretched, it exceeds ``max_pixels``.
    """
    if max(x_dpi, y_dpi) <= _MAX_ASPECT_ERROR * min(x_dpi, y_dpi):
        return image
    finer = max(x_dpi, y_dpi)
    size = (round(image.width * finer / x_dpi), round(image.height * finer / y_dpi))
    if size[0] * size[1] > max_pixels:
        raise PageTooLargeError(
            f"The image has {x_dpi:g} x {y_dpi:g} dpi; with square pixels it measures {size[0]} x "
            f"{size[1]} pixels; the limit is {max_pixels} pixels. Scan it at a lower resolution."
        )
    return image.resize(size, Image.Resampling.BICUBIC)
