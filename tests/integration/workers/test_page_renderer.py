"""Documents and their pages, through a real child process."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.pdf_files import grey_pages
from tests.support.renderers import child_of, grey_of, small_renderer, written
from tests.support.text_pdfs import PROSE, columns_by_rows, prose_page, save, write_lines
from workers.ocr.errors import (
    EncryptedDocumentError,
    FileTooLargeError,
    PageTooLargeError,
    TooManyPagesError,
)
from workers.ocr.formats import MediaType
from workers.ocr.page_image import PageFailure
from workers.ocr.pdf import PdfSource
from workers.ocr.rendered_page import RenderedPage, page_to_json
from workers.page_renderer import DocumentInfo, PageRenderer, RenderLimits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(scope="module")
def renderer() -> Iterator[PageRenderer]:
    """One whose child lives on from test to test."""
    with small_renderer() as made:
        yield made


def test_a_document_is_described_and_its_pages_are_rendered(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    path = written(tmp_path, grey_pages([40, 80], size_pt=(144, 72)))

    assert renderer.open(path) == DocumentInfo(MediaType.PDF, 2)
    page = renderer.render(1, dpi=100)

    assert (page.page_index, page.dpi, page.rotation_deg) == (1, 100, 0)
    assert page.pixels.shape == (100, 200, 3)
    assert (page.pixels == 80).all()
    assert page.render_s > 0


def test_pixels_are_the_same_as_without_a_child(renderer: PageRenderer, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (301, 199, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    renderer.open(tmp_path / "noise.png")

    assert (renderer.render(0, dpi=200).pixels == noise).all()


def test_pages_come_in_the_order_asked_for(renderer: PageRenderer, tmp_path: Path) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20, 30, 40])))

    pages = list(renderer.pages([3, 0, 2, 2], dpi=72))

    assert [page.page_index for page in pages] == [3, 0, 2, 2]
    assert [grey_of(page) for page in pages] == [40, 10, 30, 30]


def test_no_pages_are_no_pages(renderer: PageRenderer, tmp_path: Path) -> None:
    renderer.open(written(tmp_path, grey_pages([10])))

    assert list(renderer.pages([], dpi=72)) == []


def test_a_page_stays_as_it_was_when_the_next_one_comes(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20])))
    first = renderer.render(0, dpi=72)
    renderer.render(1, dpi=72)

    assert grey_of(first) == 10


def test_another_page_may_be_rendered_within_an_iteration(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20, 30])))
    pages = renderer.pages([0, 1], dpi=72)

    greys = [grey_of(next(pages)), grey_of(renderer.render(2, dpi=72)), grey_of(next(pages))]

    assert greys == [10, 30, 20]


def test_an_iteration_may_be_left_for_another_document(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20]), "one.pdf"))
    next(renderer.pages([0, 1], dpi=72))
    renderer.open(written(tmp_path, grey_pages([30]), "two.pdf"))

    assert grey_of(renderer.render(0, dpi=72)) == 30


def test_the_child_lives_on_from_document_to_document(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    path = written(tmp_path, grey_pages([10]))
    renderer.open(path)
    first = child_of(renderer)
    renderer.open(path)

    assert child_of(renderer) == first


def test_a_fresh_child_takes_over_after_its_share(tmp_path: Path) -> None:
    with PageRenderer(RenderLimits(max_pixels=4_000_000, pages_per_child=3)) as renderer:
        renderer.open(written(tmp_path, grey_pages(range(10, 70, 10))))
        first = child_of(renderer)
        greys = [grey_of(page) for page in renderer.pages(range(6), dpi=72)]

        assert greys == [10, 20, 30, 40, 50, 60]
        assert child_of(renderer) != first


@pytest.mark.parametrize("page_index", [-1, 2])
def test_a_page_that_is_not_there_is_the_callers_fault(
    renderer: PageRenderer, tmp_path: Path, page_index: int
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20])))

    with pytest.raises(ValueError, match="of 2 pages"):
        renderer.render(page_index, dpi=72)


def test_a_file_that_is_not_there_is_the_callers_fault(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        renderer.open(tmp_path / "nothing.pdf")


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_what_is_no_regular_file_is_not_opened(
    renderer: PageRenderer, tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    # Held open, so that a reader would not wait for ever.
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(descriptor, grey_pages([10]))

    with pytest.raises(OSError, match="no regular file"):
        renderer.open(tmp_path / name)

    os.close(descriptor)


def test_a_relative_path_is_the_callers(
    renderer: PageRenderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, grey_pages([10]))
    monkeypatch.chdir(tmp_path)

    assert renderer.open(Path("document.pdf")).page_count == 1


@pytest.mark.parametrize(
    "name", ["K\u00e4fer \u6587.pdf", os.fsdecode(b"l\xe9gende.pdf")], ids=ascii
)
def test_a_file_may_have_any_name(renderer: PageRenderer, tmp_path: Path, name: str) -> None:
    renderer.open(written(tmp_path, grey_pages([10]), name))

    assert grey_of(renderer.render(0, dpi=72)) == 10


def test_a_password_reaches_the_document(renderer: PageRenderer, encrypted: Path) -> None:
    with pytest.raises(EncryptedDocumentError):
        renderer.open(encrypted)

    assert renderer.open(encrypted, password="kestrel").page_count == 1  # noqa: S106 - made up


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    import pymupdf  # noqa: PLC0415 - of one fixture

    document = pymupdf.open("pdf", grey_pages([10]))
    path = tmp_path / "encrypted.pdf"
    document.save(path, encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256, user_pw="kestrel")
    return path


def test_limits_come_back_with_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([10, 20]))

    few_pages = RenderLimits(max_pixels=10_000, max_pages=1)
    with PageRenderer(few_pages) as renderer, pytest.raises(TooManyPagesError) as pages:
        renderer.open(path)
    few_bytes = RenderLimits(max_pixels=10_000, max_file_bytes=7)
    with PageRenderer(few_bytes) as renderer, pytest.raises(FileTooLargeError) as size:
        renderer.open(path)

    assert (pages.value.limit, pages.value.actual) == (1, 2)
    assert (size.value.limit, size.value.actual) == (7, path.stat().st_size)


def test_a_page_over_the_pixel_cap_is_a_failure_of_that_page(tmp_path: Path) -> None:
    frames = [Image.new("1", size) for size in ((50, 50), (500, 500), (60, 60))]
    path = tmp_path / "frames.tiff"
    frames[0].save(path, "TIFF", save_all=True, append_images=frames[1:])

    with PageRenderer(RenderLimits(max_pixels=10_000)) as renderer:
        renderer.open(path)
        first, second, third = renderer.pages(range(3), dpi=72)

    assert isinstance(first, RenderedPage)
    assert isinstance(second, PageFailure)
    assert (second.page_index, second.code) == (1, PageTooLargeError.code)
    assert isinstance(third, RenderedPage)


def test_a_layer_is_the_same_as_without_a_child(renderer: PageRenderer, tmp_path: Path) -> None:
    document, page = prose_page()
    write_lines(page, ["\u65e5\u672c\u8a9e"], top_pt=400, fontname="japan")
    path = save(document, tmp_path)
    renderer.open(path)

    received = renderer.render(0, dpi=200, mode="auto")

    with PdfSource(path) as source:
        read = source.render(0, dpi=200, max_pixels=4_000_000, mode="auto")
    assert page_to_json(received)["layer"] == page_to_json(read)["layer"]
    assert [line.text for line in received.layer.lines] == [*PROSE, "\u65e5\u672c\u8a9e"]


def test_a_page_without_pixels_leaves_those_of_another_alone(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, _ = prose_page()
    document.new_page().draw_circle((100, 100), 50)
    path = save(document, tmp_path)
    renderer.open(path)

    pages = list(renderer.pages([1, 0], dpi=72, mode="auto"))

    assert [page.decision.route for page in pages if isinstance(page, RenderedPage)] == [
        "ocr",
        "text",
    ]
    assert isinstance(pages[0], RenderedPage)
    assert pages[0].pixels is not None
    assert pages[0].pixels.min() < 255


def test_a_page_asked_for_in_another_mode_is_asked_for_again(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, _ = prose_page()
    renderer.open(save(document, tmp_path))
    renderer.render(0, dpi=72, mode="auto")

    assert renderer.render(0, dpi=72, mode="ocr").pixels is not None


def test_a_page_asked_for_in_another_text_order_is_asked_for_again(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, page = prose_page([])
    stated = columns_by_rows(page)
    renderer.open(save(document, tmp_path))

    read = renderer.render(0, dpi=72, mode="auto")
    kept = renderer.render(0, dpi=72, mode="auto", text_order="file")

    assert [line.text for line in read.layer.lines] == [*stated[::2], *stated[1::2]]
    assert [line.text for line in kept.layer.lines] == stated


def test_pages_come_in_the_text_order_that_is_asked_for(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, page = prose_page([])
    stated = columns_by_rows(page)
    columns_by_rows(document.new_page(width=595, height=842))
    renderer.open(save(document, tmp_path))

    pages = list(renderer.pages(range(2), dpi=72, mode="auto", text_order="file"))

    assert [
        [line.text for line in page.layer.lines] for page in pages if isinstance(page, RenderedPage)
    ] == [stated, stated]
