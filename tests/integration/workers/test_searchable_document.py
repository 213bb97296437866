"""Searchable PDFs: the document as it was, and every word of the result at its place."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest
from PIL import Image

from tests.support.pdf_files import assemble_pdf
from tests.support.results import FAILED, result_of, split_result
from tests.support.searchable import DPI, SIZE_PT, blank_pdf, info_of, lost_words, words_page
from tests.support.slow_renderer import SlowOnce
from workers.ocr.errors import EncryptedDocumentError, UnreadableDocumentError
from workers.page_renderer import PageRenderer, RenderLimits
from workers.searchable_document import write_searchable_pdf

LIMITS = RenderLimits(page_timeout_s=20, open_timeout_s=20)


@pytest.fixture(scope="module")
def renderer() -> Iterator[PageRenderer]:
    with PageRenderer(LIMITS) as made:
        yield made


def make(
    source: Path,
    pages: list[dict[str, Any]],
    renderer: PageRenderer,
    *,
    password: str | None = None,
    wanted: range | None = None,
) -> Path:
    header, objects = split_result(result_of(*pages))
    output = source.with_suffix(".searchable.pdf")
    chosen = [page for page in objects if wanted is None or page["page_number"] in wanted]
    with output.open("w+b") as file:
        write_searchable_pdf(
            source,
            file,
            header,
            lambda: iter(chosen),
            renderer=renderer,
            password=password,
            wanted=wanted,
        )
    return output


def edited(path: Path, **entries: str) -> Path:
    with pymupdf.open(path) as document:
        for key, value in entries.items():
            document.xref_set_key(document[0].xref, key, value)
        content = document.tobytes()
    path.write_bytes(content)
    return path


def pixels_of(path: Path, page_index: int = 0) -> bytes:
    with pymupdf.open(path) as document:
        return bytes(document[page_index].get_pixmap().samples)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("extra_turn", [0, 90, 180, 270])
def test_words_come_back_at_their_places_however_a_page_is_turned(
    renderer: PageRenderer, tmp_path: Path, rotation: int, extra_turn: int
) -> None:
    source = edited(blank_pdf(tmp_path), Rotate=str(rotation))
    sides = SIZE_PT if (rotation + extra_turn) % 180 == 0 else SIZE_PT[::-1]
    page = words_page(*sides, rotation_deg=(rotation + extra_turn) % 360)

    made = make(source, [page], renderer)

    assert lost_words(made, [page]) == []
    assert pixels_of(made) == pixels_of(source)


def test_words_come_back_where_the_page_box_has_an_offset_and_a_unit(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = edited(
        blank_pdf(tmp_path),
        MediaBox="[-100 -50 900 800]",
        CropBox="[30 40 210 166]",
        UserUnit="2",
        Rotate="90",
    )
    page = words_page(*SIZE_PT[::-1], rotation_deg=90)

    made = make(source, [page], renderer)

    assert lost_words(made, [page]) == []
    assert pixels_of(made) == pixels_of(source)


def test_text_is_read_in_order_with_its_spaces(renderer: PageRenderer, tmp_path: Path) -> None:
    made = make(blank_pdf(tmp_path), [words_page(*SIZE_PT)], renderer)

    with pymupdf.open(made) as document:
        assert document[0].get_text().splitlines() == [
            "Hello wörld 漢字𠀀", "טוב בוקר", "縦書", "upwards", "upside down", "in a slant",
        ]  # fmt: skip


def test_the_source_stays_byte_for_byte_and_text_is_appended(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = blank_pdf(tmp_path)

    made = make(source, [words_page(*SIZE_PT)], renderer)

    assert made.read_bytes().startswith(source.read_bytes())


def test_operators_that_leave_a_mess_do_not_move_the_text(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = blank_pdf(tmp_path)
    with pymupdf.open(source) as document:
        (contents,) = document[0].get_contents()
        document.update_stream(contents, b"q q 5 0 0 5 7 7 cm 0 0 3 3 re W n 2 Tr 50 Tz")
        changed = document.tobytes()
    source.write_bytes(changed)
    page = words_page(*SIZE_PT)

    assert lost_words(make(source, [page], renderer), [page]) == []


def test_resources_that_pages_share_and_inherit_stay_theirs(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document = pymupdf.open()
    for _ in range(2):
        document.new_page(width=SIZE_PT[0], height=SIZE_PT[1]).insert_text((20, 220), "stated")
    resources = document.xref_get_key(document[0].xref, "Resources")[1]
    for page in document:
        document.xref_set_key(page.xref, "Resources", "null")
    _, root = document.xref_get_key(document.pdf_catalog(), "Pages")
    document.xref_set_key(int(root.split()[0]), "Resources", resources)
    source = tmp_path / "source.pdf"
    document.save(source)
    pages = [words_page(*SIZE_PT), words_page(*SIZE_PT, page_number=2)]

    made = make(source, pages[1:], renderer)

    assert lost_words(made, pages[1:]) == []
    with pymupdf.open(made) as searchable:
        assert searchable[0].get_text() == "stated\n"
        assert "stated" in searchable[1].get_text()


def test_words_that_a_page_states_are_not_written_again(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document = pymupdf.open()
    shown = document.new_page(width=SIZE_PT[0], height=SIZE_PT[1])
    shown.insert_text((10.8, 20.4), "Hello", fontsize=7)
    source = tmp_path / "source.pdf"
    document.save(source)

    with pymupdf.open(make(source, [words_page(*SIZE_PT)], renderer)) as searchable:
        assert searchable[0].get_text().count("Hello") == 1
        assert "wörld" in searchable[0].get_text()


def test_a_page_whose_text_was_taken_from_the_file_is_left_alone(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    made = make(blank_pdf(tmp_path), [words_page(*SIZE_PT, route="text")], renderer)

    with pymupdf.open(made) as document:
        assert document[0].get_text() == ""


def test_some_pages_become_a_file_of_those_pages(renderer: PageRenderer, tmp_path: Path) -> None:
    source = blank_pdf(tmp_path, page_count=4)
    pages = [words_page(*SIZE_PT, page_number=number) for number in range(1, 5)]

    made = make(source, pages, renderer, wanted=range(2, 4))

    assert lost_words(made, pages[1:3], first=2) == []
    with pymupdf.open(made) as document:
        assert document.page_count == 2
    assert [pixels_of(made, 0), pixels_of(made, 1)] == [pixels_of(source, 1), pixels_of(source, 2)]


def test_a_file_that_had_to_be_repaired_is_written_anew(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = blank_pdf(tmp_path)
    content = source.read_bytes()
    source.write_bytes(content[: content.index(b"xref")])
    page = words_page(*SIZE_PT)

    made = make(source, [page], renderer)

    assert lost_words(made, [page]) == []
    with pymupdf.open(made) as document:
        assert not document.is_repaired


def test_an_encrypted_file_stays_encrypted(renderer: PageRenderer, tmp_path: Path) -> None:
    source = blank_pdf(
        tmp_path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="open sesame", owner_pw="own"
    )
    page = words_page(*SIZE_PT)

    with pytest.raises(EncryptedDocumentError):
        make(source, [page], renderer)
    made = make(source, [page], renderer, password="open sesame")  # noqa: S106 - of a made file

    with pymupdf.open(made) as document:
        assert document.needs_pass
        assert document.authenticate("open sesame")
        assert "wörld" in document[0].get_text()


def test_failed_and_truncated_pages_are_named_in_the_file(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = blank_pdf(tmp_path, page_count=3)
    pages = [words_page(*SIZE_PT), FAILED, words_page(*SIZE_PT, page_number=3, truncated=True)]

    made = make(source, pages, renderer)

    assert info_of(made, "PagefleetState") == "partly_succeeded"
    assert info_of(made, "PagefleetFailedPages") == "2"
    assert info_of(made, "PagefleetTruncatedPages") == "3"


def test_a_page_that_is_not_there_stays_without_text(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    pages = [words_page(*SIZE_PT), words_page(*SIZE_PT, page_number=2)]

    made = make(blank_pdf(tmp_path), pages, renderer)

    assert lost_words(made, pages[:1]) == []
    assert info_of(made, "PagefleetPagesWithoutText") == "2"


def test_a_page_that_is_not_there_is_left_out_of_a_range(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = tmp_path / "source.pdf"
    source.write_bytes(
        assemble_pdf([
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 2/Kids[99 0 R 3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 360 252]>>",
        ])
    )
    page = words_page(*SIZE_PT, page_number=2)

    made = make(source, [FAILED, page], renderer, wanted=range(1, 3))

    assert lost_words(made, [page], first=2) == []
    assert info_of(made, "PagefleetFailedPages") == "2"


def test_a_file_that_is_no_pdf_inside_is_a_named_error(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = tmp_path / "source.pdf"
    source.write_bytes(b"%PDF-1.7\nnothing")

    with pytest.raises(UnreadableDocumentError):
        make(source, [words_page(*SIZE_PT)], renderer)


def test_a_child_that_needs_too_much_memory_is_a_named_error(tmp_path: Path) -> None:
    tight = RenderLimits(memory_bytes=450 * 2**20, page_timeout_s=20, open_timeout_s=20)
    page = words_page(*SIZE_PT)
    huge = {**page, "lines": [{**line, "text": "x" * 9_000_000} for line in page["lines"]]}

    with PageRenderer(tight) as renderer:
        made = make(blank_pdf(tmp_path, page_count=2), [huge], renderer)

    assert info_of(made, "PagefleetPagesWithoutText") == "1"


def scan(size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    image = Image.new(mode, size, "white")
    image.paste("black", (30, 40, 230, 60))
    return image


@pytest.mark.parametrize("mode", ["RGB", "L", "1"])
def test_an_image_becomes_a_page_with_its_words(
    renderer: PageRenderer, tmp_path: Path, mode: str
) -> None:
    size = (1000, 700)
    source = tmp_path / "scan.png"
    scan(size, mode).save(source, dpi=(DPI, DPI))
    page = words_page(360, 252)

    made = make(source, [page], renderer)

    assert lost_words(made, [page]) == []
    with pymupdf.open(made) as document:
        assert not document.is_repaired
        shown = document[0].get_pixmap(dpi=DPI)
        pixels = np.frombuffer(shown.samples, np.uint8).reshape(shown.h, shown.stride)
        assert pixels[50, 3 * 100] < 40
        assert pixels[30, 3 * 100] > 215


def test_an_image_that_takes_too_long_once_becomes_a_page_all_the_same(tmp_path: Path) -> None:
    source = tmp_path / "scan.png"
    scan((1000, 700)).save(source, dpi=(DPI, DPI))
    page = words_page(360, 252)

    with SlowOnce(LIMITS) as slow:
        made = make(source, [page], slow)

    assert lost_words(made, [page]) == []


def test_an_image_is_turned_as_its_result_was(renderer: PageRenderer, tmp_path: Path) -> None:
    source = tmp_path / "scan.jpg"
    upright = scan((700, 1000))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    upright.rotate(180, expand=True).save(source, quality=95, exif=exif, dpi=(DPI, DPI))
    # Turned to 1000 x 700 by its orientation, and by another quarter for its text.
    page = words_page(252, 360, rotation_deg=180)

    made = make(source, [page], renderer)

    assert lost_words(made, [{**page, "rotation_deg": 0}]) == []  # the new file's page stands
    with pymupdf.open(made) as document:
        shown = document[0].get_pixmap(dpi=DPI)
        pixels = np.frombuffer(shown.samples, np.uint8).reshape(shown.h, shown.stride)
        assert (shown.w, shown.h) == (700, 1000)
        assert pixels[50, 3 * 100] < 40


def test_the_pages_of_a_tiff_are_pages_and_a_failed_one_says_so(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    source = tmp_path / "scan.tiff"
    frames = [scan((1000, 700)) for _ in range(3)]
    frames[0].save(source, save_all=True, append_images=frames[1:], dpi=(DPI, DPI))
    pages = [words_page(360, 252), FAILED, words_page(360, 252, page_number=3)]

    made = make(source, pages, renderer)

    assert lost_words(made, pages) == []
    with pymupdf.open(made) as document:
        assert document.page_count == 3
        assert "(damaged)" in document[1].get_text().replace("\n", "")


def test_the_same_input_gives_the_same_bytes(renderer: PageRenderer, tmp_path: Path) -> None:
    source = tmp_path / "scan.png"
    scan((1000, 700)).save(source, dpi=(DPI, DPI))
    page = words_page(360, 252)

    first = make(source, [page], renderer).read_bytes()

    assert make(source, [page], renderer).read_bytes() == first


def test_a_font_is_no_reason_for_a_reader_to_complain(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    made = make(blank_pdf(tmp_path), [words_page(*SIZE_PT)], renderer)

    with pymupdf.open(made) as document:
        pymupdf.TOOLS.mupdf_warnings()
        ((xref, _, kind, _, name, *_),) = document.get_page_fonts(0)
        assert (kind, name) == ("Type0", "PagefleetHidden")
        basename, extension, _, content = document.extract_font(xref)
        assert (basename, extension) == ("PagefleetHidden", "ttf")
        assert pymupdf.Font(fontbuffer=io.BytesIO(content).read()).glyph_count == 2
        assert pymupdf.TOOLS.mupdf_warnings() == ""
