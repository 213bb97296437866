"""Other people's broken, hostile and odd files: each ends in pages or in a named error."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pymupdf
import pytest

from tests.support.corpus import corpus_files, require_corpus
from tests.support.pdf_files import grey_pages
from workers.ocr.errors import DocumentError, PageError
from workers.ocr.modes import Mode
from workers.ocr.page_image import PageFailure
from workers.ocr.rendered_page import RenderedPage
from workers.page_renderer import PageRenderer, RenderLimits

LIMITS = RenderLimits(page_timeout_s=20, open_timeout_s=20)
PAGES_TRIED = 8
ROBUST = corpus_files("robust")

REFUSED = {
    "zero_byte.bin": "empty",
    "failing-invalid.pdf": "unsupported_media_type",
    "simple.pdf": "unsupported_media_type",
    "decompression_bomb.gif": "unsupported_media_type",
    "libreoffice-writer-password.pdf": "encrypted",
    "aes-256-r6.pdf": "encrypted",
    "issue15893_reduced.pdf": "encrypted",
    "invalid.pdf": "damaged",
    "poppler-85140-0.pdf": "damaged",
    "poppler-395-0-fuzzed.pdf": "damaged",
    "issue9105_other.pdf": "damaged",
    "unreadablemetadata.pdf": "damaged",
    "broken.png": "damaged",
    "seek_too_large.tif": "damaged",
    "oom-225817ca0f8c663be7ab4b9e717b02c661e66834.tif": "damaged",
}
PAGE_CODES = {
    "hello_world_rotated.pdf": ["ok"] * 5,
    "Pages-tree-refs.pdf": ["ok", "damaged"],
    "issue18042.pdf": ["damaged"] * 4,
    "bitmap-symbol-texthuffrefine.pdf": ["damaged"],
    "truncated_jpeg.jpg": ["damaged"],
    "crash-2020-10-test.tif": ["damaged"] * 4,
    "bug900822.pdf": ["ok"],
    "scan-bad.pdf": ["ok"],
    "helloworld-bad.pdf": ["ok"],
    "bomb_giant.pdf": ["ok"],
    "enormous.pdf": ["ok"],
    "multipage_single_frame_loop.tiff": ["ok"],
    "g4-multi.tiff": ["ok"] * 3,
    "multi-page-images-alpha-rgb.tiff": ["ok"] * 3,
    "multi-page-mixed.pdf": ["ok"] * 6,
}


@pytest.fixture(scope="module")
def renderer() -> Iterator[PageRenderer]:
    with PageRenderer(LIMITS) as made:
        yield made


def codes_of(renderer: PageRenderer, path: Path, mode: Mode) -> str | list[str]:
    """The error of the document, or of each page its error or "ok"."""
    try:
        page_count = renderer.open(path).page_count
    except DocumentError as error:
        return error.code
    outcomes = renderer.pages(range(min(page_count, PAGES_TRIED)), dpi=200, mode=mode)
    return [outcome.code if isinstance(outcome, PageFailure) else "ok" for outcome in outcomes]


def first_page(renderer: PageRenderer, name: str, *, page_index: int = 0) -> RenderedPage:
    renderer.open(require_corpus(name))
    return renderer.render(page_index, dpi=200)


def test_the_corpus_is_there() -> None:
    require_corpus("scan-bad.pdf")


@pytest.mark.parametrize("mode", ["ocr", "auto"])
@pytest.mark.parametrize("path", ROBUST, ids=lambda path: path.name)
def test_a_file_ends_in_pages_or_a_named_error_and_harms_nothing(
    renderer: PageRenderer, tmp_path: Path, path: Path, mode: Mode
) -> None:
    known = {error.code for root in (DocumentError, PageError) for error in root.__subclasses__()}
    started = time.monotonic()

    codes = codes_of(renderer, path, mode)

    assert set([codes] if isinstance(codes, str) else codes) <= known | {"ok"}
    assert time.monotonic() - started < LIMITS.open_timeout_s + LIMITS.page_timeout_s
    (tmp_path / "sound.pdf").write_bytes(grey_pages([90]))
    renderer.open(tmp_path / "sound.pdf")
    assert (renderer.render(0, dpi=72).pixels == 90).all()


@pytest.mark.parametrize(("name", "code"), REFUSED.items())
def test_a_document_is_refused_for_the_right_reason(
    renderer: PageRenderer, name: str, code: str
) -> None:
    assert codes_of(renderer, require_corpus(name), "ocr") == code


@pytest.mark.parametrize("mode", ["ocr", "auto"])
@pytest.mark.parametrize(("name", "codes"), PAGE_CODES.items())
def test_pages_end_as_they_should(
    renderer: PageRenderer, name: str, codes: list[str], mode: Mode
) -> None:
    assert codes_of(renderer, require_corpus(name), mode) == codes


def test_rotated_pages_come_upright(renderer: PageRenderer) -> None:
    path = require_corpus("hello_world_rotated.pdf")
    document = pymupdf.open(path)
    expected = [
        (page.rotation, round(page.rect.width / 72 * 200), round(page.rect.height / 72 * 200))
        for page in document.pages()
    ]
    renderer.open(path)

    pages = [renderer.render(index, dpi=200) for index in range(5)]

    assert [(page.rotation_deg, page.width_px, page.height_px) for page in pages] == expected


def test_a_crop_box_with_an_offset_is_the_page(renderer: PageRenderer) -> None:
    page = first_page(renderer, "cropbox_offset.pdf")

    assert (page.width_px, page.height_px) == (1389, 1945)


def test_an_exif_orientation_is_applied(renderer: PageRenderer) -> None:
    page = first_page(renderer, "img_exif_orientation.jpg")

    assert page.rotation_deg == 180


def test_white_writing_on_transparency_is_on_black(renderer: PageRenderer) -> None:
    page = first_page(renderer, "white_font_color_transparent.png")

    assert np.median(page.pixels) == 0
    assert page.pixels.max() == 255


@pytest.mark.parametrize("name", ["stamps.pdf", "acroform.pdf"])
def test_what_lies_on_the_page_is_drawn(renderer: PageRenderer, name: str) -> None:
    document = pymupdf.open(require_corpus(name))
    without = document[0].get_pixmap(dpi=200, annots=False, alpha=False, colorspace=pymupdf.csRGB)

    page = first_page(renderer, name)

    assert page.pixels.tobytes() != without.samples


def test_an_a0_page_is_rendered_at_what_the_cap_allows(renderer: PageRenderer) -> None:
    page = first_page(renderer, "issue14497.pdf")

    assert page.dpi == 196
    assert page.width_px * page.height_px <= LIMITS.max_pixels


def test_unequal_pixels_of_a_pdf_image_are_made_square(renderer: PageRenderer) -> None:
    page = first_page(renderer, "aspect.pdf")

    assert (page.width_px, page.height_px) == (1000, 800)


def test_memory_does_not_grow_with_the_pages(renderer: PageRenderer) -> None:
    renderer.open(require_corpus("pdf_500_pages.pdf"))

    residents = [resident_mib(renderer) for _ in renderer.pages(range(300), dpi=72)]

    assert max(residents[150:]) - max(residents[50:150]) < 8


def resident_mib(renderer: PageRenderer) -> int:
    pages = Path(f"/proc/{renderer.child_pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096 // 1024**2
