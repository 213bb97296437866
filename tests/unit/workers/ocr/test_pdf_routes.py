"""Every kind of layer that must not be trusted, and those that must, as a PDF made here."""

from pathlib import Path

import pymupdf
import pytest

from tests.support.pdf_files import stream
from tests.support.text_pdfs import (
    PROSE,
    columns_by_rows,
    flat_picture,
    font_pdf,
    picture_of,
    prose_page,
    save,
    write_lines,
)
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.pdf import PdfSource
from workers.ocr.rendered_page import RenderedPage

MAX_PIXELS = 60_000_000
INVISIBLE = 3
SHOWN = b"BT /F 20 Tf 20 300 Td (Readable words that nobody may trust at all) Tj ET"


def routed(
    path: Path, *, mode: Mode = "auto", dpi: float = 144, text_order: TextOrder = "reading"
) -> RenderedPage:
    with PdfSource(path) as source:
        return source.render(0, dpi=dpi, max_pixels=MAX_PIXELS, mode=mode, text_order=text_order)


def written(folder: Path, content: bytes) -> Path:
    (folder / "document.pdf").write_bytes(content)
    return folder / "document.pdf"


def texts(page: RenderedPage) -> list[str]:
    return [line.text for line in page.layer.lines]


def route_of(path: Path) -> tuple[str, str]:
    page = routed(path)
    return page.decision.route, page.decision.reason


def test_sound_text_is_taken_and_the_page_is_not_drawn(tmp_path: Path) -> None:
    document, _ = prose_page()

    page = routed(save(document, tmp_path))

    assert (page.decision.route, page.decision.reason) == ("text", "sound_layer")
    assert texts(page) == list(PROSE)
    assert page.pixels is None


def test_words_are_where_the_page_shows_them(tmp_path: Path) -> None:
    document, _ = prose_page(["first second"])
    path = save(document, tmp_path)

    word = routed(path).layer.lines[0].words[1]
    drawn = routed(path, mode="ocr").pixels

    assert word.text == "second"
    assert drawn is not None
    inside = drawn[int(word.box.y_min) : int(word.box.y_max), int(word.box.x_min) :]
    assert inside.min() < 100
    assert drawn[:, int(word.box.x_max) + 2 :].min() == 255


def test_a_page_has_the_same_size_drawn_or_not(tmp_path: Path) -> None:
    document, page = prose_page()
    page.set_mediabox(pymupdf.Rect(0, 0, 400.3, 700.7))
    path = save(document, tmp_path)

    taken, drawn = routed(path, dpi=101), routed(path, dpi=101, mode="ocr")

    assert (taken.width_px, taken.height_px) == (drawn.width_px, drawn.height_px)
    assert drawn.pixels is not None
    assert drawn.pixels.shape == (drawn.height_px, drawn.width_px, 3)


@pytest.mark.parametrize("rotation_deg", [90, 180, 270])
def test_a_rotated_page_states_its_text_as_it_is_held(tmp_path: Path, rotation_deg: int) -> None:
    document, page = prose_page(rotate=rotation_deg)
    page.set_rotation(rotation_deg)
    path = save(document, tmp_path)

    taken, drawn = routed(path), routed(path, mode="ocr").pixels

    assert drawn is not None
    for line in taken.layer.lines:
        box = line.quad.box
        part = drawn[int(box.y_min) : int(box.y_max), int(box.x_min) : int(box.x_max)]
        assert part.min() < 100


def test_a_crop_box_moves_the_text(tmp_path: Path) -> None:
    document, page = prose_page(["hello"])
    page.set_cropbox(pymupdf.Rect(50, 80, 300, 300))

    line = routed(save(document, tmp_path), dpi=72).layer.lines[0]

    assert line.quad.box.x_min == pytest.approx(22, abs=1)


def test_a_user_unit_scales_the_text(tmp_path: Path) -> None:
    document, page = prose_page(["hello"])
    document.xref_set_key(page.xref, "UserUnit", "2")

    line = routed(save(document, tmp_path), dpi=72).layer.lines[0]

    assert line.quad.box.x_min == pytest.approx(144, abs=2)


def test_an_empty_page_is_blank(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page()

    assert route_of(save(document, tmp_path)) == ("blank", "no_ink")


def test_a_page_of_one_color_is_blank(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.draw_rect((-9, -9, 999, 999), color=None, fill=(0.9, 0.9, 0.8))

    assert route_of(save(document, tmp_path)) == ("blank", "no_ink")


def test_white_text_alone_is_a_blank_page(tmp_path: Path) -> None:
    document, _ = prose_page(color=(1, 1, 1))

    assert route_of(save(document, tmp_path)) == ("blank", "no_ink")


def test_a_scan_is_recognized(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=400, height=200)
    page.insert_image(page.rect, stream=picture_of(PROSE[:3]))

    routed_page = routed(save(document, tmp_path))

    assert (routed_page.decision.route, routed_page.decision.reason) == ("ocr", "no_layer")
    assert routed_page.pixels is not None


def test_text_drawn_as_shapes_is_recognized(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.draw_line((72, 72), (200, 90))

    assert route_of(save(document, tmp_path)) == ("ocr", "no_layer")


def test_a_scan_with_hidden_text_is_recognized_again(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=400, height=200)
    page.insert_image(page.rect, stream=picture_of(PROSE[:3]))
    write_lines(page, ["stale wrong words", "of long ago"], render_mode=INVISIBLE)

    assert route_of(save(document, tmp_path)) == ("ocr", "invisible_text")


def test_much_hidden_text_beside_visible_text_is_not_trusted(tmp_path: Path) -> None:
    document, page = prose_page(PROSE[:1])
    write_lines(page, PROSE[1:4], top_pt=500, render_mode=INVISIBLE)

    assert route_of(save(document, tmp_path)) == ("ocr", "invisible_text")


def test_a_hidden_label_does_not_cost_the_layer(tmp_path: Path) -> None:
    document, page = prose_page()
    write_lines(page, ["label"], top_pt=700, render_mode=INVISIBLE)

    page_routed = routed(save(document, tmp_path))

    assert page_routed.decision.route == "text"
    assert texts(page_routed) == list(PROSE)


def test_text_under_a_scan_is_not_trusted(tmp_path: Path) -> None:
    document, page = prose_page(["stale wrong words", "of long ago, under the picture"])
    page.insert_image(page.rect, stream=picture_of(PROSE), keep_proportion=False)

    assert route_of(save(document, tmp_path)) == ("ocr", "text_under_image")


def test_a_picture_behind_text_does_not_hide_it(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_image(page.rect, stream=flat_picture(230), keep_proportion=False)
    write_lines(page, PROSE)

    assert route_of(save(document, tmp_path)) == ("text", "sound_layer")


def test_text_that_was_painted_over_is_not_trusted(tmp_path: Path) -> None:
    document, page = prose_page()
    page.draw_rect((60, 80, 550, 150), color=None, fill=(1, 1, 1))

    assert route_of(save(document, tmp_path)) == ("ocr", "text_without_ink")


def test_a_white_word_among_many_is_left_out(tmp_path: Path) -> None:
    document, page = prose_page()
    write_lines(page, ["keywords"], top_pt=700, color=(1, 1, 1))

    assert texts(routed(save(document, tmp_path))) == list(PROSE)


def test_print_that_the_layer_does_not_state_is_recognized(tmp_path: Path) -> None:
    document, page = prose_page(PROSE[:1])
    for row in range(6):
        for column in range(20):
            x, y = 80 + 20 * column, 300 + 30 * row
            page.draw_rect((x, y, x + 7, y + 10), color=(0, 0, 0), width=2)

    assert route_of(save(document, tmp_path)) == ("ocr", "ink_without_text")


def test_rules_and_frames_are_no_print(tmp_path: Path) -> None:
    document, page = prose_page()
    for row in range(40):
        page.draw_line((60, 300 + 12 * row), (540, 300 + 12 * row))
    for column in range(12):
        page.draw_line((60 + 40 * column, 300), (60 + 40 * column, 768))

    assert route_of(save(document, tmp_path)) == ("text", "sound_layer")


def test_an_image_beside_sound_text_is_recognized_too(tmp_path: Path) -> None:
    document, page = prose_page()
    page.insert_image((100, 400, 500, 600), stream=picture_of(["printed in the picture"]))

    page_routed = routed(save(document, tmp_path), dpi=72)

    assert (page_routed.decision.route, page_routed.decision.reason) == ("mixed", "image_regions")
    assert texts(page_routed) == list(PROSE)
    (region,) = page_routed.decision.regions
    assert (region.x_min, region.y_max) == pytest.approx((100, 600), abs=2)
    assert page_routed.pixels is not None


def test_the_strips_of_a_scan_are_one_image(tmp_path: Path) -> None:
    document, page = prose_page()
    picture = pymupdf.Pixmap(picture_of(["printed in strips"]))
    strips = 25
    for strip in range(strips):
        rows = pymupdf.IRect(
            0, strip * picture.h // strips, picture.w, (strip + 1) * picture.h // strips
        )
        part = pymupdf.Pixmap(picture.colorspace, rows, 0)
        part.copy(picture, rows)
        page.insert_image(
            (100, 400 + 8 * strip, 500, 408 + 8 * strip), pixmap=part, keep_proportion=False
        )

    page_routed = routed(save(document, tmp_path))

    assert page_routed.decision.route == "mixed"
    assert len(page_routed.decision.regions) == 1


def test_an_icon_is_no_region(tmp_path: Path) -> None:
    document, page = prose_page()
    page.insert_image((40, 90, 50, 100), stream=picture_of(["x"]))

    assert route_of(save(document, tmp_path)) == ("text", "sound_layer")


def test_a_symbolic_font_without_a_table_is_not_trusted(tmp_path: Path) -> None:
    font = (
        b"<</Type/Font/Subtype/TrueType/BaseFont/ABCDEF+Odd/FirstChar 32/LastChar 33"
        b"/Widths[500 500]/FontDescriptor 6 0 R>>"
    )
    descriptor = (
        b"<</Type/FontDescriptor/FontName/ABCDEF+Odd/Flags 4/FontBBox[0 -200 1000 800]"
        b"/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80/FontFile2 7 0 R>>"
    )
    embedded = stream(b"", pymupdf.Font("helv").buffer)

    path = written(tmp_path, font_pdf(font, SHOWN, descriptor, embedded))

    assert route_of(path) == ("ocr", "unmapped_font")


def test_glyphs_that_are_only_numbered_are_not_trusted(tmp_path: Path) -> None:
    names = b" ".join(b"/G%02X" % code for code in range(32, 127))
    font = (
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica"
        b"/Encoding<</Type/Encoding/Differences[32 %s]>>>>" % names
    )

    assert routed(written(tmp_path, font_pdf(font, SHOWN))).decision.route == "ocr"


def table_pdf(mapping: str) -> bytes:
    """A font whose table gives each letter a to z the next characters of ``mapping``."""
    rows = "\n".join(
        f"<{ord('a') + index:02X}> <{character.encode('utf-16-be').hex()}>"
        for index, character in enumerate(mapping)
    )
    table = (
        f"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> "
        f"endcodespacerange {len(mapping)} beginbfchar {rows} endbfchar endcmap end"
    )
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>"
    words = b"BT /F 14 Tf 20 300 Td (thequickbrownfox jumpsoverthelazydog) Tj ET"
    return font_pdf(font, words, stream(b"", table.encode()))


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ("\ue000" * 26, "unknown_characters"),
        ("\ufffd" * 26, "unknown_characters"),
        ("!#$%&*+<=>^|~!#$%&*+<=>^|~", "implausible_text"),
        ("aбcδeжgאiйkלmнoπqрsтuвwхyч", "implausible_text"),
    ],
)
def test_a_table_of_nonsense_is_not_trusted(tmp_path: Path, mapping: str, reason: str) -> None:
    assert route_of(written(tmp_path, table_pdf(mapping))) == ("ocr", reason)


def test_a_sound_table_is_trusted(tmp_path: Path) -> None:
    path = written(tmp_path, table_pdf("abcdefghijklmnopqrstuvwxyz"))

    assert texts(routed(path)) == ["thequickbrownfox jumpsoverthelazydog"]


def test_a_page_with_an_endless_layer_is_recognized(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    for row in range(70):
        write_lines(page, ["word " * 200], top_pt=5 + 10 * row, x_pt=2, size_pt=0.4)
    long = "word " * 13_000
    write_lines(page, [long], top_pt=800, x_pt=0, size_pt=0.004)

    assert route_of(save(document, tmp_path)) == ("ocr", "layer_too_long")


def test_mode_text_takes_hidden_text_and_draws_nothing(tmp_path: Path) -> None:
    document, page = prose_page(PROSE[:1])
    write_lines(page, PROSE[1:2], top_pt=500, render_mode=INVISIBLE)

    page_routed = routed(save(document, tmp_path), mode="text")

    assert (page_routed.decision.route, page_routed.decision.reason) == ("text", "mode")
    assert texts(page_routed) == list(PROSE[:2])
    assert page_routed.pixels is None


def test_mode_text_says_that_a_page_states_nothing(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().draw_line((72, 72), (200, 90))

    page_routed = routed(save(document, tmp_path), mode="text")

    assert (page_routed.decision.route, page_routed.decision.reason) == ("text", "no_layer")
    assert texts(page_routed) == []


def test_mode_ocr_draws_every_page(tmp_path: Path) -> None:
    document, _ = prose_page()

    page_routed = routed(save(document, tmp_path), mode="ocr")

    assert (page_routed.decision.route, page_routed.decision.reason) == ("ocr", "mode")
    assert page_routed.pixels is not None
    assert texts(page_routed) == []


def test_what_stands_in_form_fields_is_text(tmp_path: Path) -> None:
    document, page = prose_page()
    field = pymupdf.Widget()
    field.field_type, field.field_name = pymupdf.mupdf.PDF_WIDGET_TYPE_TEXT, "name"
    field.rect, field.field_value = pymupdf.Rect(72, 400, 300, 430), "Ada Fenwick"
    page.add_widget(field)

    assert texts(routed(save(document, tmp_path))) == [*PROSE, "Ada Fenwick"]


def test_a_page_of_two_columns_written_line_by_line_is_read_by_columns(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    for row in range(20):
        for column in range(2):
            text = f"column {column} has this in row {row} of its own text"
            write_lines(page, [text], x_pt=60 + 260 * column, top_pt=80 + 15 * row, size_pt=11)

    read = texts(routed(save(document, tmp_path)))

    assert read == [
        f"column {column} has this in row {row} of its own text"
        for column in range(2)
        for row in range(20)
    ]


@pytest.mark.parametrize("mode", ["auto", "text"])
def test_columns_written_line_by_line_come_in_the_order_that_is_asked_for(
    tmp_path: Path, mode: Mode
) -> None:
    document, page = prose_page([])
    stated = columns_by_rows(page)
    path = save(document, tmp_path)

    read, kept = routed(path, mode=mode), routed(path, mode=mode, text_order="file")

    assert texts(read) == [*stated[::2], *stated[1::2]]
    assert texts(kept) == stated
    assert read.decision == kept.decision
