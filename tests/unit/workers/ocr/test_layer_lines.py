from typing import Any

import pytest

from workers.ocr.layer_lines import read_lines, to_text_line
from workers.ocr.line_pieces import join_pieces
from workers.ocr.result import TextLine

SIZE = 10.0
FILLED = 16


def span(text: str, x: float, baseline: float, **changes: Any) -> dict[str, Any]:
    chars = [
        {
            "c": character,
            "origin": (x + 5 * place, baseline),
            "bbox": (x + 5 * place, baseline - 8, x + 5 * place + 5, baseline + 2),
        }
        for place, character in enumerate(text)
    ]
    return {
        "size": SIZE,
        "font": "F",
        "char_flags": FILLED,
        "alpha": 255,
        "chars": chars,
        **changes,
    }


def column_span(text: str, x: float, y: float) -> dict[str, Any]:
    chars = [
        {"c": each, "origin": (x, y + 10 * i + 9), "bbox": (x, y + 10 * i, x + 10, y + 10 * i + 10)}
        for i, each in enumerate(text)
    ]
    return {"size": SIZE, "font": "F", "char_flags": FILLED, "alpha": 255, "chars": chars}


def raw(*lines: list[dict[str, Any]], wmode: int = 0, direction: Any = (1.0, 0.0)) -> Any:
    return {
        "blocks": [
            {"lines": [{"spans": spans, "dir": direction, "wmode": wmode} for spans in lines]}
        ]
    }


def placed(values: Any) -> list[TextLine]:
    lines = [
        to_text_line(line, zoom=2.0, width_px=400, height_px=400)
        for line in join_pieces(read_lines(values))
    ]
    return [line for line in lines if line is not None]


def texts(values: Any) -> list[str]:
    return [line.text for line in placed(values)]


def test_spans_of_a_line_are_one_line_with_its_words() -> None:
    (line,) = placed(raw([span("The ke", 10, 50), span("eper", 40, 50)]))

    assert line.text == "The keeper"
    assert [word.text for word in line.words] == ["The", "keeper"]
    assert (line.words[1].box.x_min, line.words[1].box.x_max) == (60, 120)


def test_white_space_of_any_kind_is_one_space() -> None:
    assert texts(raw([span("a\u00a0\u2003 b ", 10, 50)])) == ["a b"]


def test_lines_of_spaces_are_none() -> None:
    assert texts(raw([span("   ", 10, 50)], [])) == []


def test_a_soft_hyphen_that_is_drawn_is_a_hyphen() -> None:
    assert texts(raw([span("hyphen\u00ad", 10, 50)])) == ["hyphen-"]


def test_marks_of_direction_and_control_are_no_text() -> None:
    assert texts(raw([span("a\u200f\ufeff\x07b", 10, 50)])) == ["ab"]


def test_joiners_are_text() -> None:
    assert texts(raw([span("مهاوخ\u200cیم", 10, 50)])) == ["می\u200cخواهم"]


def test_characters_are_composed() -> None:
    assert texts(raw([span("u\u0308ber", 10, 50)])) == ["\u00fcber"]


@pytest.mark.parametrize("changes", [{"char_flags": 0}, {"alpha": 0}, {"char_flags": 64}])
def test_what_leaves_no_ink_is_a_line_of_its_own(changes: dict[str, int]) -> None:
    lines = read_lines(raw([span("shown", 10, 50), span("hidden", 40, 50, **changes)]))

    assert [(line.text, line.is_visible) for line in lines] == [("shown", True), ("hidden", False)]


def test_every_character_of_japanese_is_a_word() -> None:
    (line,) = placed(raw([span("使用Linux的", 10, 50)]))

    assert [word.text for word in line.words] == ["使", "用", "Linux", "的"]


def test_vertical_characters_set_one_by_one_are_one_line() -> None:
    pieces = [[column_span(each, 100, 10 * i)] for i, each in enumerate("日本語")]

    (line,) = placed(raw(*pieces, wmode=1, direction=(0.0, 1.0)))

    assert line.text == "日本語"
    assert line.quad.angle_deg == pytest.approx(90)


def test_two_columns_are_two_lines() -> None:
    values = raw(
        [column_span("日本語", 100, 0)],
        [column_span("縦書き", 80, 0)],
        wmode=1,
        direction=(0.0, 1.0),
    )

    assert texts(values) == ["日本語", "縦書き"]


def test_characters_stacked_in_a_horizontal_font_are_a_vertical_line() -> None:
    pieces = [[column_span(each, 100, 10 * i)] for i, each in enumerate("日本語")]

    (line,) = placed(raw(*pieces))

    assert line.text == "日本語"
    assert line.quad.angle_deg == pytest.approx(90)


def test_a_column_of_cells_is_not_stacked() -> None:
    pieces = [[column_span(each, 100, 25 * i)] for i, each in enumerate("一二三")]

    assert texts(raw(*pieces)) == ["一", "二", "三"]


def test_pieces_of_a_right_to_left_line_are_read_as_one() -> None:
    values = raw([span("הז", 60, 50)], [span("Big", 40, 50)], [span("בוט ", 15, 50)])

    assert texts(values) == ["זהBig טוב"]


def test_pieces_of_a_left_to_right_line_stay_apart() -> None:
    assert texts(raw([span("one", 10, 50)], [span("two", 60, 50)])) == ["one", "two"]


@pytest.mark.parametrize(
    ("direction", "angle_deg"),
    [((1.0, 0.0), 0), ((0.0, 1.0), 90), ((-1.0, 0.0), 180), ((0.0, -1.0), -90)],
)
def test_a_line_reads_in_its_direction(direction: tuple[float, float], angle_deg: float) -> None:
    (line,) = placed(raw([span("word", 50, 50)], direction=direction))

    assert abs(line.quad.angle_deg) == pytest.approx(abs(angle_deg))
    assert line.quad.box.x_min == 100


def test_a_slanted_line_has_a_slanted_quad() -> None:
    chars = span("slanted", 20, 20)["chars"]
    for place, char in enumerate(chars):
        x, y = 20 + 6 * place, 20 + 6 * place
        char["bbox"] = (x, y, x + 12, y + 12)
    values = raw(
        [{"size": SIZE, "font": "F", "char_flags": FILLED, "alpha": 255, "chars": chars}],
        direction=(0.7071, 0.7071),
    )

    (line,) = placed(values)

    assert line.quad.angle_deg == pytest.approx(45, abs=0.1)
    assert line.quad.height == pytest.approx(2 * SIZE, abs=0.1)


def test_what_lies_beyond_the_page_is_none() -> None:
    assert texts(raw([span("far", 900, 50)])) == []


def test_what_sticks_out_is_clipped() -> None:
    (line,) = placed(raw([span("margin", 190, 50)]))

    assert line.quad.box.x_max == 400
    assert line.words[0].box.x_max == 400


def accented(*placed_texts: tuple[str, float]) -> Any:
    """A line with each character at its own place, 5 pt wide."""
    chars = [span(text, x, 50)["chars"][0] for text, x in placed_texts]
    return raw([{**span("", 0, 0), "chars": chars}])


def test_an_accent_set_over_a_letter_is_part_of_it() -> None:
    values = accented(
        ("M", 10), ("\u00a8", 15.2), ("u", 15), ("n", 20), ("\u00b4", 25.2), ("\u0131", 25)
    )

    (line,) = placed(values)

    assert line.text == "M\u00fcn\u00ed"
    assert [word.text for word in line.words] == ["M\u00fcn\u00ed"]


def test_an_accent_beside_a_letter_stays_one() -> None:
    assert texts(accented(("\u00a8", 10), ("u", 15))) == ["\u00a8u"]


def test_an_accent_that_goes_with_no_letter_stays_one() -> None:
    assert texts(accented(("\u00a8", 10), ("q", 10))) == ["\u00a8q"]
