"""The door to PyMuPDF: PDF pages as upright page images, and the text that they state.

PyMuPDF 1.28.2 or later below 2: earlier ones have CVE-2026-3308, and 2.x requires onnxruntime.
"""

import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.page_ink import INK_DPI, has_ink
from workers.ocr.page_tree import TreeNode, walk_page_tree
from workers.ocr.pdf_fonts import FontFacts, is_unmapped
from workers.ocr.pdf_scan import find_scan
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
_REFERENCE: Final = re.compile(r"(\d+) \d+ R")
# MuPDF's warning where a JPEG's data end before its pixels do; one without its end marker alone
# has none. The last bytes are a few blocks, more is a strip of the page.
_JPEG_ENDS_EARLY: Final = "premature end of file in jpeg"
_STRIP_SHARE: Final = 0.02
_MISSING_GRAY: Final = 128
_NO_LAYER: Final = TextLayer()
_NOWHERE: Final = Box(0, 0, 0, 0)


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
        self._mend_page_tree()
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

    def _mend_page_tree(self) -> None:
        """Make the open document's tree of pages flat where it does not count right.

        MuPDF believes the counts, and so would lose pages in silence. Where they state more pages
        than there are, the number stays: those that are missing have to be seen as failed pages.
        What is no tree (a branch in two places) is left to MuPDF, which reads it by the counts.
        """
        with suppress(*_MUPDF_ERRORS), _shortage_raised():
            _, root = self._document.xref_get_key(self._document.pdf_catalog(), "Pages")
            root_xref = int(root.split()[0])
            tree = walk_page_tree(root_xref, self._tree_node)
            if tree.is_counted_right or not tree.pages:
                return
            page_count = len(tree.pages)
            with suppress(*_MUPDF_ERRORS), _shortage_raised():
                page_count = max(page_count, int(self._document.page_count))
            kids = " ".join(f"{xref} 0 R" for xref in tree.pages)
            self._document.xref_set_key(root_xref, "Kids", f"[{kids}]")
            self._document.xref_set_key(root_xref, "Count", str(page_count))

    def _tree_node(self, xref: int) -> TreeNode | None:
        try:
            # As to MuPDF, the type decides, and where it is missing what an inner node alone has.
            kind = self._value(xref, "Type")
            kids = self._value(xref, "Kids") if kind in {"/Pages", ""} else ""
            if not (kids or kind == "/Pages"):
                return None
            count = self._value(xref, "Count")
        except mupdf.FzErrorSystem:
            raise  # a tree that is read in part would have another number of pages each time
        except _MUPDF_ERRORS:
            return None  # a page that is not there fails when its turn comes
        if "<<" in kids:
            raise ValueError("a page that is no object of its own has no number")
        return TreeNode(
            tuple(int(number) for number in _REFERENCE.findall(kids)),
            int(count) if count.isdecimal() else None,
        )

    def _load(self, page_index: int) -> pymupdf.Page:
        page: pymupdf.Page = self._document.load_page(page_index)
        # MuPDF makes an empty page of a missing object.
        if self._document.xref_object(page.xref) == "null":
            raise DamagedPageError("The page is missing from the file.")
        return page

    def render(
        self,
        page_index: int,
        *,
        dpi: float,
        max_pixels: int,
        mode: Mode = "ocr",
        text_order: TextOrder = "reading",
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
        with translated():
            page = self._load(page_index)
            page_dpi = fit_dpi(page.rect.width, page.rect.height, dpi, max_pixels)
            frame = _frame(page, page_dpi)
            scan = find_scan(page, frame, max_pixels)
            if scan is not None:
                frame = scan.page.frame
            decision, layer = self._route(page, frame, mode, text_order)
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
        self, page: pymupdf.Page, frame: Frame, mode: Mode, text_order: TextOrder
    ) -> tuple[RouteDecision, TextLayer]:
        """Choose the page's route; the layer is what it has of its own on that route."""
        if mode == "ocr":
            return RouteDecision("ocr", "mode"), _NO_LAYER
        if mode == "text":
            layer = self._stated_layer(page, frame, text_order)
            return RouteDecision("text", "mode" if layer.lines else "no_layer"), layer
        drawn = [(kind, Box(*box)) for kind, box, *_ in page.get_bboxlog()]
        early = decide_early(drawn)
        if early is not None:
            return early, _NO_LAYER
        decision, layer = self._weigh(page, drawn, frame, text_order)
        return decision, layer if decision.route in {"text", "mixed"} else _NO_LAYER

    def _stated_layer(self, page: pymupdf.Page, frame: Frame, text_order: TextOrder) -> TextLayer:
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
        return stated_layer(contents, frame, text_order)

    def _weigh(
        self,
        page: pymupdf.Page,
        drawn: Sequence[tuple[str, Box]],
        frame: Frame,
        text_order: TextOrder,
    ) -> tuple[RouteDecision, TextLayer]:
        """Hold the page's text against its ink."""
        contents = self._contents(page, drawn)
        if contents is None:
            return RouteDecision("ocr", "layer_too_long"), _NO_LAYER
        ink_dpi = fit_dpi(page.rect.width, page.rect.height, INK_DPI, _MAX_INK_PIXELS)
        gray = _draw(page, ink_dpi, pymupdf.csGRAY)[:, :, 0]
        if not has_ink(gray):
            return RouteDecision("blank", "no_ink"), _NO_LAYER
        evidence, layer = weigh_layer(contents, gray, ink_dpi, frame, text_order)
        return decide_route(evidence), layer

    def _contents(
        self, page: pymupdf.Page, drawn: Sequence[tuple[str, Box]]
    ) -> PageContents | None:
        """Read what the page says about itself; None when that is too much text."""
        text = structured_text(page)
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


@contextmanager
def _shortage_raised() -> Iterator[None]:
    """Raise MuPDF's shortage of memory as Python's, and leave other errors alone.

    Raises:
        MemoryError: MuPDF could not allocate.
    """
    try:
        yield
    except mupdf.FzErrorSystem as error:
        # Once a file is open, what fails in the system is an allocation.
        raise MemoryError("MuPDF could not allocate") from error


@contextmanager
def translated() -> Iterator[None]:
    """Raise what MuPDF raises as ours, and leave nothing of the page behind.

    Raises:
        DamagedPageError: MuPDF cannot load or draw the page.
        MemoryError: MuPDF could not allocate.
    """
    try:
        with _shortage_raised():
            yield
    except _MUPDF_ERRORS as error:
        raise DamagedPageError("The page is damaged and cannot be rendered.") from error
    finally:
        # The store keeps decoded images and fonts. Emptied, memory does not grow with the pages
        # and a broken image complains on every page that shows it, not on the first alone.
        pymupdf.TOOLS.store_shrink(100)


def _draw(page: pymupdf.Page, dpi: float, colorspace: pymupdf.Colorspace) -> NDArray[np.uint8]:
    """Return the page as (H, W, channels) uint8.

    Raises:
        DamagedPageError: what the page consists of cannot be decoded, or a part of it is missing.
    """
    complaints: list[str] = []
    warnings: list[str] = []
    # A warning that is like the last one is only counted, so an earlier page's has to go.
    mupdf.fz_flush_warnings()
    mupdf.fz_set_error_callback(complaints.append)
    mupdf.fz_set_warning_callback(warnings.append)
    try:
        pixmap = page.get_pixmap(matrix=_zoom(dpi), colorspace=colorspace, alpha=False)
    finally:
        mupdf.fz_set_error_callback(_ignore)
        mupdf.fz_set_warning_callback(_ignore)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.h, pixmap.stride)
    # A copy, since MuPDF frees the samples together with the pixmap.
    pixels = rows[:, : pixmap.w * pixmap.n].reshape(pixmap.h, pixmap.w, pixmap.n).copy()
    is_cut_off = any(_JPEG_ENDS_EARLY in warning for warning in warnings)
    is_lost = bool(complaints) or (is_cut_off and _has_missing_strip(pixels))
    if is_lost and not draws_text([(kind, _NOWHERE) for kind, *_ in page.get_bboxlog()]):
        raise DamagedPageError("What this page consists of is damaged and cannot be drawn whole.")
    return pixels


def _has_missing_strip(pixels: NDArray[np.uint8]) -> bool:
    """Whether a strip along one side has the gray that stands for blocks without data.

    Args:
        pixels: (H, W, channels) uint8.
    """
    for turns in range(4):
        side = np.rot90(pixels, turns)
        strip = side[: math.ceil(_STRIP_SHARE * len(side))].astype(np.int16)
        if np.abs(strip - _MISSING_GRAY).max() <= 1:
            return True
    return False


def structured_text(page: pymupdf.Page) -> pymupdf.TextPage:
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
