"""Pages that are one JPEG: taken out where that is the page, rendered where it is not."""

from pathlib import Path

import numpy as np
import pymupdf
import pytest
from numpy.typing import NDArray

from tests.support.pdf_files import stream
from tests.support.scan_pdfs import (
    FILL,
    SIZE_PX,
    UPRIGHT,
    cmyk_jpeg,
    flated,
    jpeg_of,
    rgb_jpeg,
    scan_pdf,
    scan_pixels,
)
from workers.ocr.errors import DamagedPageError
from workers.ocr.modes import Mode
from workers.ocr.pdf import PdfSource
from workers.ocr.rendered_page import RenderedPage

MAX_PIXELS = 60_000_000
WANTED_DPI = 200
OWN_DPI = 210
GRAY = b"/ColorSpace/DeviceGray"
RGB = b"/ColorSpace/DeviceRGB"
# A quarter turn, and each of the four mirrored, as content streams place an image.
PLACES = {
    "upright": UPRIGHT,
    "quarter": b"0 144 -72 0 72 0",
    "half": b"-72 0 0 -144 72 144",
    "three quarters": b"0 -144 72 0 0 144",
    "mirrored": b"-72 0 0 144 72 0",
    "mirrored quarter": b"0 144 72 0 0 0",
    "mirrored half": b"72 0 0 -144 0 144",
    "mirrored three quarters": b"0 -144 -72 0 72 144",
}


def first_page(
    folder: Path,
    content: bytes,
    *,
    dpi: float = WANTED_DPI,
    mode: Mode = "auto",
    max_pixels: int = MAX_PIXELS,
) -> RenderedPage:
    (folder / "scan.pdf").write_bytes(content)
    with PdfSource(folder / "scan.pdf") as source:
        return source.render(0, dpi=dpi, max_pixels=max_pixels, mode=mode)


def rendering(content: bytes, dpi: float) -> NDArray[np.int16]:
    """Return what MuPDF makes of the page."""
    page = pymupdf.open("pdf", content)[0]
    zoom = dpi / 72
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csRGB)
    return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.h, pixmap.w, 3).astype(np.int16)


def is_taken(page: RenderedPage) -> bool:
    return page.dpi == pytest.approx(OWN_DPI)


def assert_rendered(page: RenderedPage, content: bytes) -> None:
    assert page.dpi == WANTED_DPI
    assert page.pixels is not None
    assert (page.pixels == rendering(content, WANTED_DPI)).all()


def turned_scan(place: str, mode: str) -> bytes:
    size = SIZE_PX[::-1] if "quarter" in place else SIZE_PX
    return scan_pdf(
        jpeg_of(scan_pixels(mode, size)),
        size=size,
        image=GRAY if mode == "L" else RGB,
        content=FILL % PLACES[place],
    )


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("place", PLACES)
def test_the_pixels_of_a_scan_are_what_mupdf_draws_at_its_resolution(
    tmp_path: Path, place: str, mode: str
) -> None:
    content = turned_scan(place, mode)

    page = first_page(tmp_path, content)

    assert is_taken(page)
    assert page.pixels is not None
    difference = np.abs(page.pixels - rendering(content, OWN_DPI))
    assert difference.mean() < 0.5
    assert difference.max() <= (2 if mode == "L" else 12)


@pytest.mark.parametrize("rotation_deg", [0, 90, 180, 270])
def test_a_rotated_scan_comes_upright(tmp_path: Path, rotation_deg: int) -> None:
    content = scan_pdf(page=b"/Rotate %d" % rotation_deg)

    page = first_page(tmp_path, content)

    assert is_taken(page)
    assert page.rotation_deg == rotation_deg
    assert page.pixels is not None
    assert np.abs(page.pixels - rendering(content, OWN_DPI)).mean() < 0.5


def test_a_scan_of_twice_the_wanted_resolution_is_decoded_at_half_its_size(tmp_path: Path) -> None:
    content = scan_pdf()

    page = first_page(tmp_path, content, dpi=OWN_DPI / 2)

    assert page.dpi == pytest.approx(OWN_DPI / 2)
    assert page.pixels is not None
    assert page.pixels.shape == (210, 105, 3)
    assert np.abs(page.pixels - rendering(content, OWN_DPI / 2)).mean() < 1.5


def test_a_gray_scan_of_much_more_resolution_is_shrunk_to_the_wanted_one(tmp_path: Path) -> None:
    content = scan_pdf(jpeg_of(scan_pixels("L")), image=GRAY, page=b"/Rotate 90")

    page = first_page(tmp_path, content, dpi=150)

    assert page.dpi == 150
    assert page.pixels is not None
    difference = page.pixels - rendering(content, 150)
    assert 0 < np.abs(difference).mean() < 1.5  # Not at all is what MuPDF would draw.


def test_the_user_unit_makes_the_resolution_of_a_scan_lower(tmp_path: Path) -> None:
    page = first_page(tmp_path, scan_pdf(page=b"/UserUnit 2"), dpi=100)

    assert page.dpi == pytest.approx(OWN_DPI / 2)
    assert page.pixels is not None
    assert page.pixels.shape == (420, 210, 3)


@pytest.mark.parametrize(
    "content",
    [
        scan_pdf(content=b"BT 3 Tr /F 9 Tf 9 9 Td (hidden) Tj ET " + FILL % UPRIGHT),
        scan_pdf(content=b"0 0 72 144 re W n " + FILL % UPRIGHT),
        scan_pdf(page=b"/Group<</S/Transparency/CS/DeviceRGB/I true>>"),
        scan_pdf(flated(jpeg_of(scan_pixels())), image=RGB + b"/Filter[/FlateDecode/DCTDecode]"),
        scan_pdf(
            jpeg_of(scan_pixels("L")),
            image=b"/ColorSpace[/CalGray<</WhitePoint[0.95 1 1.09]/Gamma 2.2>>]",
        ),
        scan_pdf(jpeg_of(scan_pixels(), progressive=True)),
        scan_pdf(page=b"/Annots[<</Type/Annot/Subtype/Link/Rect[9 9 30 30]/Border[0 0 0]>>]"),
    ],
    ids=["hidden text", "clip to page", "plain group", "two filters", "gamma", "scans", "link"],
)
def test_what_does_not_show_leaves_a_scan_a_scan(tmp_path: Path, content: bytes) -> None:
    assert is_taken(first_page(tmp_path, content))


SHOWN = FILL % UPRIGHT
MASK = b"<</Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray"
STAMP = (
    b"/Annots[<</Type/Annot/Subtype/Square/Rect[9 9 60 60]/C[1 0 0]/AP<</N 6 0 R>>>>]",
    stream(b"/Type/XObject/Subtype/Form/BBox[0 0 51 51]", b"1 0 0 rg 9 9 9 9 re f"),
)


@pytest.mark.parametrize(
    "content",
    [
        scan_pdf(content=SHOWN + b" 9 9 20 20 re f"),
        scan_pdf(content=b"9 9 20 20 re f " + SHOWN),
        scan_pdf(content=SHOWN + b" BT /F 20 Tf 9 30 Td (text) Tj ET"),
        scan_pdf(content=SHOWN + b" q 20 0 0 20 9 9 cm /I Do Q"),
        scan_pdf(content=b"9 9 20 20 re W n " + SHOWN),
        scan_pdf(content=b"36 0 m 72 144 l 0 144 l W n " + SHOWN),
        scan_pdf(content=b"/G gs " + SHOWN, resources=b"/ExtGState<</G<</ca 0.5>>>>"),
        scan_pdf(content=b"/G gs " + SHOWN, resources=b"/ExtGState<</G<</BM/Multiply>>>>"),
        scan_pdf(page=STAMP[0], more=[STAMP[1]]),
        scan_pdf(image=RGB + b"/SMask 6 0 R", more=[MASK + b"/Length 1>>stream\n\x80\nendstream"]),
        scan_pdf(image=RGB + b"/Mask[0 9 0 9 0 9]"),
        scan_pdf(image=RGB + b"/Decode[1 0 1 0 1 0]"),
        scan_pdf(image=RGB + b"/DecodeParms<</ColorTransform 0>>"),
        scan_pdf(image=RGB + b"/DecodeParms[<</ColorTransform 0>>]/Filter[/DCTDecode]"),
        scan_pdf(rgb_jpeg()),
        scan_pdf(cmyk_jpeg(), image=b"/ColorSpace/DeviceCMYK"),
        scan_pdf(
            jpeg_of(scan_pixels("L")),
            image=b"/ColorSpace[/Indexed/DeviceRGB 255<" + b"00ff80" * 256 + b">]",
        ),
        scan_pdf(
            jpeg_of(scan_pixels("L")),
            image=b"/ColorSpace[/Separation/Black/DeviceGray<</FunctionType 2/Domain[0 1]"
            b"/C0[1]/C1[0]/N 1>>]",
        ),
        scan_pdf(page=b"/CropBox[9 9 60 120]"),
        scan_pdf(content=FILL % b"60 0 0 120 6 12"),
        scan_pdf(content=FILL % b"72 2 -2 144 0 0"),
    ],
    ids=[
        *("drawing over it", "drawing below it", "text", "twice", "cutting clip", "slanted clip"),
        *("see-through", "blended", "stamp", "soft mask", "color key", "negative"),
        *("RGB inside", "RGB inside, in an array", "RGB by marker", "CMYK", "palette", "ink"),
        *("cropped", "margin", "skewed"),
    ],
)
def test_a_scan_that_is_not_the_whole_page_is_rendered(tmp_path: Path, content: bytes) -> None:
    assert_rendered(first_page(tmp_path, content, mode="ocr"), content)


def test_a_filled_form_field_on_a_scan_is_seen(tmp_path: Path) -> None:
    document = pymupdf.open("pdf", scan_pdf())
    field = pymupdf.Widget()
    field.field_type, field.field_name = pymupdf.mupdf.PDF_WIDGET_TYPE_TEXT, "name"
    field.rect, field.field_value = pymupdf.Rect(10, 10, 60, 30), "Ada"
    document[0].add_widget(field)
    content = document.tobytes()

    assert_rendered(first_page(tmp_path, content, mode="ocr"), content)


@pytest.mark.parametrize("mode", ["ocr", "auto", "text"])
def test_a_scan_has_its_own_frame_on_every_route(tmp_path: Path, mode: Mode) -> None:
    page = first_page(tmp_path, scan_pdf(), mode=mode)

    assert is_taken(page)
    assert (page.width_px, page.height_px) == SIZE_PX


def test_an_empty_scan_is_blank(tmp_path: Path) -> None:
    page = first_page(tmp_path, scan_pdf(jpeg_of(np.full((420, 210, 3), 255, np.uint8))))

    assert page.decision.route == "blank"
    assert (page.width_px, page.height_px) == SIZE_PX


def test_a_scan_keeps_to_the_pixel_cap(tmp_path: Path) -> None:
    page = first_page(tmp_path, scan_pdf(), max_pixels=40_000)

    assert page.pixels is not None
    assert page.width_px * page.height_px <= 40_000
    assert page.pixels.shape == (page.height_px, page.width_px, 3)


def test_a_scan_in_an_encrypted_file_is_taken(tmp_path: Path) -> None:
    document = pymupdf.open("pdf", scan_pdf())
    encrypted = document.tobytes(encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256, owner_pw="own")

    assert is_taken(first_page(tmp_path, encrypted))


@pytest.mark.parametrize("mode", ["ocr", "auto"])
def test_a_scan_that_is_no_jpeg_is_damaged(tmp_path: Path, mode: Mode) -> None:
    with pytest.raises(DamagedPageError, match="cannot be drawn"):
        first_page(tmp_path, scan_pdf(b"\xff\xd8no picture"), mode=mode)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("mode", ["ocr", "auto"])
def test_a_scan_that_was_cut_off_in_the_middle_is_damaged(
    tmp_path: Path, mode: Mode, rotate: int
) -> None:
    jpeg = jpeg_of(scan_pixels())
    content = scan_pdf(jpeg[: len(jpeg) // 2], page=b"/Rotate %d" % rotate)

    with pytest.raises(DamagedPageError, match="drawn whole"):
        first_page(tmp_path, content, mode=mode)


def test_a_cut_off_scan_that_is_too_fine_to_be_taken_out_is_damaged(tmp_path: Path) -> None:
    jpeg = jpeg_of(scan_pixels())

    with pytest.raises(DamagedPageError, match="drawn whole"):
        first_page(tmp_path, scan_pdf(jpeg[: len(jpeg) // 2]), dpi=OWN_DPI / 1.5)


@pytest.mark.parametrize("missing_bytes", [2, 8])
def test_a_scan_that_lacks_its_last_bytes_is_drawn(tmp_path: Path, missing_bytes: int) -> None:
    content = scan_pdf(jpeg_of(scan_pixels())[:-missing_bytes])

    assert_rendered(first_page(tmp_path, content), content)


def test_a_scan_of_another_size_than_its_file_says_is_left_to_mupdf(tmp_path: Path) -> None:
    content = scan_pdf(jpeg_of(scan_pixels(size=(105, 210))))

    assert_rendered(first_page(tmp_path, content), content)


def test_a_scan_is_the_same_whichever_page_was_rendered_before(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(scan_pdf())

    with PdfSource(tmp_path / "scan.pdf") as source:
        pages = [
            source.render(0, dpi=dpi, max_pixels=MAX_PIXELS) for dpi in (OWN_DPI, 105, OWN_DPI)
        ]

    assert (pages[0].pixels == pages[2].pixels).all()
