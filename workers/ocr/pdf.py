"""The door to PyMuPDF: PDF pages as upright page images, and the text that they state.

PyMuPDF 1.28.2 or later below 2: earlier ones have CVE-2026-3308, and 2.x requires onnxruntime.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
import pymupdf
from numpy.typing import NDArray
from pymupdf import mupdf

from workers.ocr.errors import (
    DamagedPageError,
    EmptyDocumentError,
    EncryptedDocumentError,
    PageTooLargeError,
    UnreadableDocumentError,
)
from workers.ocr.formats import MediaType
from workers.ocr.geometry import Box
from workers.ocr.layer_evidence import (
    DrawnImage,
    Frame,
    PageContents,
    stated_layer,
    weigh_layer,
)
from workers.ocr.modes import Mode
from workers.ocr.page_ink import INK_DPI, has_ink
from workers.ocr.pdf_fonts import FontFacts, is_unmapped
from workers.ocr.pdf_image_page import ImagePage, Matrix, PlacedImage, as_page, covers
from workers.ocr.raster import decode_jpeg
from workers.ocr.rendered_page import DRAWN_ROUTES, RenderedPage
from workers.ocr.routing import RouteDecision, decide_early, decide_route, draws_text
from workers.ocr.text_layer import MAX_LAYER_CHARACTERS, TextLayer

MIN_DPI: Final = 36
"""Below it 10 pt type is 5 px high, which no recognizer reads."""

_PT_PER_INCH: Final = 72
# What MuPDF's door lets out: its own errors, PyMuPDF's RuntimeError family (FileDataError), and
# the ValueError of its argument checks, which hostile files reach too.
_MUPDF_ERRORS: Final = (mupdf.FzErrorBase, RuntimeError, ValueError)
# Spaces stay as they are set and ligatures come apart; what lies outside the page is left out.
_TEXT_FLAGS: Final = mupdf.FZ_STEXT_PRESERVE_WHITESPACE | mupdf.FZ_STEXT_MEDIABOX_CLIP
# Ink needs no more, however large the page.
_MAX_INK_PIXELS: Final = 8_000_000
# Some writers give every page the images of all pages.
_MAX_SHARED_XOBJECTS: Final = 64
_NO_LAYER: Final = TextLayer()
_NOWHERE: Final = Box(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Scan:
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


class PdfSource:
    """An open PDF; see ``workers.ocr.sources.PageSource``.

    /Rotate, CropBox and UserUnit are applied; annotations and filled form fields are drawn, since
    a reader sees them. A PDF with only an owner password opens without one.
    """

    media_type = MediaType.PDF

    def __init__(self, path: Path, *, password: str | None = None) -> None:
        """Open the file; MuPDF repairs what it can.

        Raises:
            UnreadableDocumentError: no PDF, or damaged so that no page is left.
            EncryptedDocumentError: the password is missing or wrong.
            EmptyDocumentError: a sound PDF without pages.
        """
        mupdf.fz_set_error_callback(_ignore)
        mupdf.fz_set_warning_callback(_ignore)
        try:
            # By descriptor: MuPDF takes names in UTF-8 only, and a file's name may be any bytes.
            with path.open("rb") as stream:
                self._document = pymupdf.open(f"/dev/fd/{stream.fileno()}", filetype="pdf")
        except _MUPDF_ERRORS as error:
            raise UnreadableDocumentError(
                "The PDF is damaged and cannot be repaired. Export or scan it again."
            ) from error
        try:
            self._unlock(password)
            self.page_count = self._count_pages()
        except BaseException:
            self._document.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._document.close()

    def _unlock(self, password: str | None) -> None:
        if not self._document.needs_pass:
            return
        if password is None:
            raise EncryptedDocumentError(
                "The PDF is encrypted. Send it with its password, or without encryption."
            )
        if not self._document.authenticate(password):
            raise EncryptedDocumentError("The PDF is encrypted and the password is wrong.")

    def _count_pages(self) -> int:
        try:
            page_count = int(self._document.page_count)
        except _MUPDF_ERRORS as error:
            raise UnreadableDocumentError("The PDF's list of pages is damaged.") from error
        if page_count > 0:
            return page_count
        if self._document.is_repaired:
            raise UnreadableDocumentError(
                "The PDF is damaged: no page could be repaired. Export or scan it again."
            )
        raise EmptyDocumentError("The PDF has no pages.")

    def _load(self, page_index: int) -> pymupdf.Page:
        page: pymupdf.Page = self._document.load_page(page_index)
        # MuPDF makes an empty page of a missing object.
        if self._document.xref_object(page.xref) == "null":
            raise DamagedPageError("The page is missing from the file.")
        return page

    def render(
        self, page_index: int, *, dpi: float, max_pixels: int, mode: Mode = "ocr"
    ) -> RenderedPage:
        """Return one upright page; the protocol says more.

        A page that is one JPEG of enough resolution is not rendered: its own pixels are taken, in
        the frame that ``pdf_image_page`` chooses, on all routes.

        An image that MuPDF cannot decode is left out by it. Where the page has visible text, the
        rest is worth reading; else it has lost its content, and fails, so that nobody takes it for
        a blank page.

        Raises:
            DamagedPageError: MuPDF cannot load the page, or cannot decode what it consists of.
            PageTooLargeError: over ``max_pixels`` even at ``MIN_DPI``.
            MemoryError: MuPDF could not allocate.
        """
        started = time.perf_counter()
        with _translated(page_index):
            page = self._load(page_index)
            page_dpi = fit_dpi(page.rect.width, page.rect.height, dpi, max_pixels)
            frame = _frame(page, page_dpi)
            scan = _scan(page, frame, max_pixels)
            if scan is not None:
                frame = scan.page.frame
            decision, layer = self._route(page, frame, mode)
            pixels = None
            if decision.route in DRAWN_ROUTES:
                pixels = None if scan is None else scan.pixels()
                if pixels is None:
                    frame = _frame(page, page_dpi)
                    pixels = _draw(page, page_dpi, pymupdf.csRGB)
                if mode == "auto" and not has_ink(pixels):
                    decision, pixels = RouteDecision("blank", "no_ink"), None
            rotation_deg = int(page.rotation)
        return RenderedPage(
            page_index=page_index,
            width_px=frame.width_px,
            height_px=frame.height_px,
            dpi=frame.dpi,
            rotation_deg=rotation_deg,
            render_s=time.perf_counter() - started,
            decision=decision,
            pixels=pixels,
            layer=layer,
        )

    def _route(
        self, page: pymupdf.Page, frame: Frame, mode: Mode
    ) -> tuple[RouteDecision, TextLayer]:
        """Choose the page's route; the layer is what it has of its own on that route."""
        if mode == "ocr":
            return RouteDecision("ocr", "mode"), _NO_LAYER
        if mode == "text":
            layer = self._stated_layer(page, frame)
            return RouteDecision("text", "mode" if layer.lines else "no_layer"), layer
        drawn = [(kind, Box(*box)) for kind, box, *_ in page.get_bboxlog()]
        early = decide_early(drawn)
        if early is not None:
            return early, _NO_LAYER
        decision, layer = self._weigh(page, drawn, frame)
        return decision, layer if decision.route in {"text", "mixed"} else _NO_LAYER

    def _stated_layer(self, page: pymupdf.Page, frame: Frame) -> TextLayer:
        """Return all that the page states.

        Raises:
            DamagedPageError: that is more than is read.
        """
        contents = self._contents(page, [])
        if contents is None:
            raise DamagedPageError(
                f"The page states more than {MAX_LAYER_CHARACTERS} characters of text. Process it "
                "with mode auto or ocr."
            )
        return stated_layer(contents, frame)

    def _weigh(
        self, page: pymupdf.Page, drawn: Sequence[tuple[str, Box]], frame: Frame
    ) -> tuple[RouteDecision, TextLayer]:
        """Hold the page's text against its ink."""
        contents = self._contents(page, drawn)
        if contents is None:
            return RouteDecision("ocr", "layer_too_long"), _NO_LAYER
        ink_dpi = fit_dpi(page.rect.width, page.rect.height, INK_DPI, _MAX_INK_PIXELS)
        gray = _draw(page, ink_dpi, pymupdf.csGRAY)[:, :, 0]
        if not has_ink(gray):
            return RouteDecision("blank", "no_ink"), _NO_LAYER
        evidence, layer = weigh_layer(contents, gray, ink_dpi, frame)
        return decide_route(evidence), layer

    def _contents(
        self, page: pymupdf.Page, drawn: Sequence[tuple[str, Box]]
    ) -> PageContents | None:
        """Read what the page says about itself; None when that is too much text."""
        text = _structured_text(page)
        if len(text.extractText()) > MAX_LAYER_CHARACTERS:
            return None
        return PageContents(
            raw=text.extractRAWDICT(),
            drawn=drawn,
            images=_images(page) if any("im" in kind for kind, _ in drawn) else [],
            unmapped_fonts=self._unmapped_fonts(page),
        )

    def _unmapped_fonts(self, page: pymupdf.Page) -> frozenset[str]:
        return frozenset(
            name.partition("+")[2] or name
            for xref, _, kind, name, *_ in page.get_fonts()
            if xref and is_unmapped(self._font_facts(xref, kind))
        )

    def _font_facts(self, xref: int, kind: str) -> FontFacts:
        descriptor = self._value(xref, "FontDescriptor")
        flags = self._value(xref, "FontDescriptor/Flags")
        return FontFacts(
            kind=kind,
            has_unicode_table=bool(self._value(xref, "ToUnicode")),
            encoding=self._value(xref, "Encoding"),
            is_embedded="/FontFile" in descriptor,
            flags=int(flags) if flags.isdecimal() else 0,
        )

    def _value(self, xref: int, key: str) -> str:
        """Return the source of a dictionary's value, references followed, empty for none."""
        kind, value = self._document.xref_get_key(xref, key)
        if kind == "xref":
            return str(self._document.xref_object(int(value.split()[0])))
        return "" if kind == "null" else str(value)


def _scan(page: pymupdf.Page, rendered: Frame, max_pixels: int) -> _Scan | None:
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
    return _Scan(image, image_page)


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


@contextmanager
def _translated(page_index: int) -> Iterator[None]:
    """Raise what MuPDF raises as ours, and leave nothing of the page behind.

    Raises:
        DamagedPageError: MuPDF cannot load or draw the page.
        MemoryError: MuPDF could not allocate.
    """
    try:
        yield
    except mupdf.FzErrorSystem as error:
        # Once a file is open, what fails in the system is an allocation.
        raise MemoryError(f"MuPDF could not allocate for page index {page_index}") from error
    except _MUPDF_ERRORS as error:
        raise DamagedPageError("The page is damaged and cannot be rendered.") from error
    finally:
        # The store keeps decoded images and fonts. Emptied, memory does not grow with the pages
        # and a broken image complains on every page that shows it, not on the first alone.
        pymupdf.TOOLS.store_shrink(100)


def _draw(page: pymupdf.Page, dpi: float, colorspace: pymupdf.Colorspace) -> NDArray[np.uint8]:
    """Return the page as (H, W, channels) uint8.

    Raises:
        DamagedPageError: what the page consists of cannot be decoded.
    """
    complaints: list[str] = []
    mupdf.fz_set_error_callback(complaints.append)
    try:
        pixmap = page.get_pixmap(matrix=_zoom(dpi), colorspace=colorspace, alpha=False)
        if complaints and not draws_text([(kind, _NOWHERE) for kind, *_ in page.get_bboxlog()]):
            raise DamagedPageError("What this page consists of is damaged and cannot be drawn.")
    finally:
        mupdf.fz_set_error_callback(_ignore)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.h, pixmap.stride)
    # A copy, since MuPDF frees the samples together with the pixmap.
    return rows[:, : pixmap.w * pixmap.n].reshape(pixmap.h, pixmap.w, pixmap.n).copy()


def _structured_text(page: pymupdf.Page) -> pymupdf.TextPage:
    """Return the text of the upright page, with what stands in form fields and annotations.

    ``Page.get_textpage`` would undo /Rotate, and read the contents alone.
    """
    text = mupdf.FzStextPage(mupdf.FzRect(*page.rect))
    device = mupdf.fz_new_stext_device(text, mupdf.FzStextOptions(_TEXT_FLAGS))
    mupdf.fz_run_page(page.this, device, mupdf.FzMatrix(), mupdf.FzCookie())
    mupdf.fz_close_device(device)
    return pymupdf.TextPage(text)


def _images(page: pymupdf.Page) -> list[DrawnImage]:
    """Return the images on the page, as far as they lie on it."""
    images = []
    for image in page.get_image_info():
        area = pymupdf.Rect(image["bbox"]) & page.rect
        if not area.is_empty:
            pixel_count = image["width"] * image["height"]
            images.append(DrawnImage(Box(*area), pixel_count, not image["has-mask"]))
    return images


def _frame(page: pymupdf.Page, dpi: float) -> Frame:
    """Return the size that ``_draw`` gives the page, without drawing it."""
    area = (page.rect * _zoom(dpi)).irect
    return Frame(dpi, max(int(area.width), 1), max(int(area.height), 1))


def _zoom(dpi: float) -> pymupdf.Matrix:
    return pymupdf.Matrix(dpi / _PT_PER_INCH, dpi / _PT_PER_INCH)


def fit_dpi(width_pt: float, height_pt: float, wanted_dpi: float, max_pixels: int) -> float:
    """Return the resolution at which a page of this size keeps to the pixel cap.

    Args:
        width_pt: width of the upright page, 1/72 inch, above 0.
        height_pt: height of the same.
        wanted_dpi: is returned where the cap allows it; a lowered one is a whole number.
        max_pixels: cap on width x height in pixels, counted with edges rounded up.

    Raises:
        PageTooLargeError: not even ``MIN_DPI`` (or a lower wanted one) keeps to the cap.
    """
    lowest = min(wanted_dpi, MIN_DPI)
    allowed = _PT_PER_INCH * math.sqrt(max_pixels / (width_pt * height_pt))
    dpi = wanted_dpi if wanted_dpi <= allowed else float(math.floor(allowed))
    while dpi >= lowest and _pixel_count(width_pt, height_pt, dpi) > max_pixels:
        dpi = float(math.ceil(dpi) - 1)
    if dpi < lowest:
        raise PageTooLargeError(
            f"The page measures {width_pt:.0f} x {height_pt:.0f} pt: even at {lowest:g} dpi it has "
            f"more than {max_pixels} pixels. Split the page, or raise the pixel limit."
        )
    return dpi


def _pixel_count(width_pt: float, height_pt: float, dpi: float) -> int:
    zoom = dpi / _PT_PER_INCH
    return (math.ceil(width_pt * zoom) + 1) * (math.ceil(height_pt * zoom) + 1)


def _ignore(_message: str) -> None:
    """Keep MuPDF's messages off standard error: what it could mend is no news."""
