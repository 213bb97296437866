import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.pdf_files import assemble_pdf, grey_pages, page_tree_pdf, stream
from workers.ocr.errors import (
    DamagedPageError,
    EmptyDocumentError,
    EncryptedDocumentError,
    PageTooLargeError,
    UnreadableDocumentError,
)
from workers.ocr.pdf import MIN_DPI, PdfSource, fit_dpi
from workers.ocr.rendered_page import RenderedPage

MAX_PIXELS = 60_000_000
PASSWORD = "open"  # noqa: S105 - of a made-up file
WRONG_PASSWORD = "close"  # noqa: S105 - the same


def saved(folder: Path, document: pymupdf.Document, **options: object) -> Path:
    document.save(folder / "document.pdf", **options)
    return folder / "document.pdf"


def written(folder: Path, content: bytes) -> Path:
    (folder / "document.pdf").write_bytes(content)
    return folder / "document.pdf"


def first_page(path: Path, *, dpi: float = 72, max_pixels: int = MAX_PIXELS) -> RenderedPage:
    with PdfSource(path) as source:
        return source.render(0, dpi=dpi, max_pixels=max_pixels)


def outcomes_of(path: Path) -> Sequence[int | str]:
    """The width of each page, or its error."""
    with PdfSource(path) as source:
        return [outcome_of(source, index) for index in range(source.page_count)]


def outcome_of(source: PdfSource, page_index: int) -> int | str:
    try:
        return source.render(page_index, dpi=72, max_pixels=MAX_PIXELS, mode="text").width_px
    except DamagedPageError as error:
        return error.code


def one_page(width_pt: float, height_pt: float) -> tuple[pymupdf.Document, pymupdf.Page]:
    document = pymupdf.open()
    return document, document.new_page(width=width_pt, height=height_pt)


def test_a_page_comes_at_the_wanted_resolution(tmp_path: Path) -> None:
    document, _ = one_page(144, 72)

    page = first_page(saved(tmp_path, document), dpi=300)

    assert page.pixels.shape == (300, 600, 3)
    assert page.pixels.dtype == np.uint8
    assert page.dpi == 300


@pytest.mark.parametrize(
    ("rotation_deg", "corner"), [(0, (0, 0)), (90, (0, -1)), (180, (-1, -1)), (270, (-1, 0))]
)
def test_a_rotated_page_comes_upright(
    tmp_path: Path, rotation_deg: int, corner: tuple[int, int]
) -> None:
    document, page = one_page(100, 60)
    page.draw_rect((0, 0, 10, 10), color=None, fill=(1, 0, 0))
    page.set_rotation(rotation_deg)

    image = first_page(saved(tmp_path, document))

    assert image.rotation_deg == rotation_deg
    assert image.pixels[corner].tolist() == [255, 0, 0]


def test_only_the_crop_box_is_seen(tmp_path: Path) -> None:
    document, page = one_page(200, 200)
    page.draw_rect((50, 60, 150, 140), color=None, fill=(0, 0, 1))
    page.set_cropbox(pymupdf.Rect(50, 60, 150, 140))

    image = first_page(saved(tmp_path, document))

    assert image.pixels.shape == (80, 100, 3)
    assert (image.pixels == [0, 0, 255]).all()


def test_the_user_unit_makes_the_page_larger(tmp_path: Path) -> None:
    document, page = one_page(100, 50)
    document.xref_set_key(page.xref, "UserUnit", "3")

    assert first_page(saved(tmp_path, document)).pixels.shape == (150, 300, 3)


def test_stamps_are_drawn(tmp_path: Path) -> None:
    document, page = one_page(200, 100)
    page.add_stamp_annot(pymupdf.Rect(10, 10, 190, 90))

    assert first_page(saved(tmp_path, document)).pixels.min() < 128


def test_filled_form_fields_are_drawn(tmp_path: Path) -> None:
    document, page = one_page(200, 100)
    field = pymupdf.Widget()
    field.field_type, field.field_name = pymupdf.mupdf.PDF_WIDGET_TYPE_TEXT, "name"
    field.rect, field.field_value = pymupdf.Rect(10, 10, 190, 40), "Ada Fenwick"
    page.add_widget(field)

    assert first_page(saved(tmp_path, document)).pixels.min() < 128


def test_a_page_over_the_pixel_cap_comes_at_a_lower_resolution_that_it_names(
    tmp_path: Path,
) -> None:
    document, _ = one_page(720, 720)

    page = first_page(saved(tmp_path, document), dpi=200, max_pixels=1_000_000)

    assert page.dpi == 99
    assert page.pixels.shape == (990, 990, 3)


def test_a_page_that_would_be_unreadable_under_the_cap_is_too_large(tmp_path: Path) -> None:
    document, _ = one_page(14_400, 14_400)

    with pytest.raises(PageTooLargeError, match="14400 x 14400 pt"):
        first_page(saved(tmp_path, document), dpi=200, max_pixels=1_000_000)


@given(
    width_pt=st.floats(1, 20_000),
    height_pt=st.floats(1, 20_000),
    wanted_dpi=st.integers(72, 600),
    max_pixels=st.integers(10_000, 100_000_000),
)
def test_a_fitted_resolution_keeps_to_the_cap_and_to_the_wish(
    width_pt: float, height_pt: float, wanted_dpi: int, max_pixels: int
) -> None:
    assume((width_pt / 2 + 1) * (height_pt / 2 + 1) <= max_pixels / 4)

    dpi = fit_dpi(width_pt, height_pt, wanted_dpi, max_pixels)

    assert MIN_DPI <= dpi <= wanted_dpi
    assert math.ceil(width_pt * dpi / 72) * math.ceil(height_pt * dpi / 72) <= max_pixels


def test_a_user_password_is_needed_and_checked(tmp_path: Path) -> None:
    document, _ = one_page(72, 72)
    path = saved(
        tmp_path,
        document,
        encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256,
        user_pw=PASSWORD,
        owner_pw="own",
    )

    with pytest.raises(EncryptedDocumentError, match="with its password"):
        PdfSource(path)
    with pytest.raises(EncryptedDocumentError, match="password is wrong"):
        PdfSource(path, password=WRONG_PASSWORD)
    with PdfSource(path, password=PASSWORD) as source:
        assert source.render(0, dpi=72, max_pixels=MAX_PIXELS).pixels.mean() == 255


def test_a_file_with_only_an_owner_password_opens(tmp_path: Path) -> None:
    document, _ = one_page(72, 72)
    path = saved(tmp_path, document, encryption=pymupdf.mupdf.PDF_ENCRYPT_RC4_128, owner_pw="own")

    assert first_page(path).pixels.shape == (72, 72, 3)


def test_a_sound_pdf_without_pages_is_empty(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        assemble_pdf([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 0/Kids[]>>"]),
    )

    with pytest.raises(EmptyDocumentError):
        PdfSource(path)


def test_a_pdf_repaired_to_no_pages_is_damaged(tmp_path: Path) -> None:
    path = written(
        tmp_path, b"%PDF-1.7\n1 0 obj\n<</Type/Catalog>>\nendobj\ntrailer<</Root 1 0 R>>"
    )

    with pytest.raises(UnreadableDocumentError):
        PdfSource(path)


@pytest.mark.parametrize("no_page", [[], [b"null"]])
def test_a_page_whose_object_is_no_page_fails_and_the_others_do_not(
    tmp_path: Path, no_page: list[bytes]
) -> None:
    path = written(
        tmp_path,
        assemble_pdf([
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 2/Kids[3 0 R 4 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>",
            *no_page,
        ]),
    )

    with PdfSource(path) as source, pytest.raises(DamagedPageError):
        source.render(1, dpi=72, max_pixels=MAX_PIXELS)

    assert first_page(path).pixels.shape == (72, 72, 3)


def broken_image_pdf(content: bytes) -> bytes:
    broken = (
        b"<</Type/XObject/Subtype/Image/Width 70/Height 70/ColorSpace/DeviceRGB"
        b"/BitsPerComponent 8/Filter/DCTDecode/Length 4>>stream\n1234\nendstream"
    )
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Resources<</XObject<</I 5 0 R>>"
        b"/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>/Contents 6 0 R>>"
    )
    return assemble_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 2/Kids[3 0 R 4 0 R]>>",
        page,
        page,
        broken,
        stream(b"", b"q 72 0 0 72 0 0 cm /I Do Q " + content),
    ])


@pytest.mark.parametrize("content", [b"", b"BT 3 Tr /F 9 Tf 9 9 Td (hidden) Tj ET"])
def test_every_page_that_is_an_undecodable_image_is_damaged(tmp_path: Path, content: bytes) -> None:
    with PdfSource(written(tmp_path, broken_image_pdf(content))) as source:
        with pytest.raises(DamagedPageError, match="cannot be drawn"):
            source.render(0, dpi=72, max_pixels=MAX_PIXELS)
        with pytest.raises(DamagedPageError, match="cannot be drawn"):
            source.render(1, dpi=72, max_pixels=MAX_PIXELS)


def test_a_page_of_text_survives_an_undecodable_image(tmp_path: Path) -> None:
    content = b"BT /F 20 Tf 9 30 Td (text) Tj ET"

    assert first_page(written(tmp_path, broken_image_pdf(content))).pixels.min() < 128


def test_mupdf_keeps_its_noise_to_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DamagedPageError):
        first_page(written(tmp_path, broken_image_pdf(b"")))

    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_page_is_the_same_whichever_was_rendered_before(tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([10, 20, 30]))

    with PdfSource(path) as source:
        backwards = [source.render(index, dpi=72, max_pixels=MAX_PIXELS) for index in (2, 1, 0)]

    assert [int(page.pixels.mean()) for page in backwards] == [30, 20, 10]


@pytest.mark.parametrize(
    ("branch_counts", "root_count"),
    [
        (("/Count 3", "/Count 2"), "/Count 5"),
        (("/Count 2", "/Count 2"), "/Count 4"),
        (("/Count 2", "/Count 3"), "/Count 5"),
        (("/Count 4", "/Count 1"), "/Count 5"),
        (("/Count 3", "/Count 2"), "/Count 1"),
        (("/Count 3", "/Count 2"), "/Count 0"),
        (("/Count 3", "/Count 2"), "/Count -1"),
        (("/Count 3", "/Count 2"), "/Count 2000000000"),
        (("", ""), ""),
    ],
)
def test_no_page_is_lost_where_the_counts_are_wrong(
    tmp_path: Path, branch_counts: tuple[str, str], root_count: str
) -> None:
    path = written(tmp_path, page_tree_pdf(branch_counts=branch_counts, root_count=root_count))

    assert outcomes_of(path) == [10, 20, 30, 40, 50]


def test_pages_that_are_counted_and_missing_are_damaged(tmp_path: Path) -> None:
    path = written(
        tmp_path, page_tree_pdf(branch_counts=("/Count 3", "/Count 3"), root_count="/Count 7")
    )

    assert outcomes_of(path) == [10, 20, 30, 40, 50, "damaged", "damaged"]


@pytest.mark.parametrize(
    ("root", "third", "widths_pt"),
    [
        pytest.param(
            b"/Kids[3 0 R 4 0 R 5 0 R]/Count 2",
            b"/Type/Pages/Parent 2 0 R/Count 0",
            [20, 30],
            id="an empty branch without kids",
        ),
        pytest.param(
            b"/Kids[3 0 R 4 0 R 5 0 R]/Count 3",
            b"/Type/Page/Parent 2 0 R/MediaBox[0 0 10 72]/Kids[]",
            [10, 20, 30],
            id="a page with kids",
        ),
        pytest.param(
            b"/Kids[3 0 R 3 0 R]/Count 4",
            b"/Type/Pages/Parent 2 0 R/Kids[4 0 R 5 0 R]/Count 2",
            [20, 30, 20, 30],
            id="a branch in two places",
        ),
        pytest.param(
            b"/Kids[4 0 R 2 0 R 5 0 R]/Count 2", b"", [20, 30], id="a branch inside itself"
        ),
    ],
)
def test_an_odd_tree_that_counts_right_gives_all_its_pages(
    tmp_path: Path, root: bytes, third: bytes, widths_pt: list[int]
) -> None:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d 72]>>"
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages%s>>" % root, b"<<%s>>" % third]
    path = written(tmp_path, assemble_pdf([*objects, page % 20, page % 30]))

    assert outcomes_of(path) == widths_pt
