import json
from typing import Any

import pytest

from tests.support.export_checks import (
    ALTO_NS,
    alto_words,
    bbox_of,
    check_alto,
    check_hocr,
    csv_rows,
    hocr_words,
    words_of,
)
from tests.support.results import (
    FAILED,
    page_of,
    page_with_lines,
    placed_line,
    require_valid,
    result_of,
    split_result,
)
from workers.ocr.exports.escaping import harmless_cell
from workers.ocr.exports.formats import ExportFormat
from workers.ocr.exports.text_formats import TEXT_WRITERS

HOSTILE = [
    "<script>alert('1')</script> & \"quotes\"",
    "nul\x00 bell\x07 lone\ud800 last\uffff",
    '=HYPERLINK("http://evil") @x',
    "]]> --> ?>",
    "# no heading *nor* _emphasis_ [link](http://x) `code`",
    "1. no list",
    "בוקר טוב ABC 12",
]
PAGES = [
    page_of(["one two", "three"], ["four"]),
    FAILED,
    page_of(["five"], page_index=2, crops_found=9),
]


def write(name: ExportFormat, *pages: dict[str, Any], filename: str = "scan.pdf") -> str:
    return "".join(TEXT_WRITERS[name](*split_result(result_of(*pages, filename=filename))))


def test_alto_holds_the_words_in_order_and_validates() -> None:
    root = check_alto(write("alto", *PAGES))

    assert alto_words(root) == words_of(PAGES) == ["one", "two", "three", "four", "five"]


def test_alto_says_what_is_missing() -> None:
    pages = check_alto(write("alto", *PAGES)).findall(f".//{ALTO_NS}Page")

    assert [page.get("QUALITY") for page in pages] == [None, "Missing", None]
    assert "(damaged): The page is <damaged> &" in str(pages[1].get("QUALITY_DETAIL"))
    assert "1 of 9" in str(pages[2].get("QUALITY_DETAIL"))


def test_hocr_holds_the_words_in_order_and_keeps_its_rules() -> None:
    root = check_hocr(write("hocr", *PAGES))

    assert hocr_words(root) == words_of(PAGES)
    first = root.xpath("//*[@class='ocr_line']/@title")[0]
    assert first == "bbox 10 10 110 30; baseline 0.0000 0.0"


def test_hocr_says_what_is_missing() -> None:
    root = check_hocr(write("hocr", *PAGES))

    notices = ["".join(each.itertext()) for each in root.xpath("//*[@class='pagefleet_notice']")]
    assert notices[0] == (
        "Page 2 has no result (damaged): The page is <damaged> & cannot be decoded."
    )
    assert "1 of 9" in notices[1]


@pytest.mark.parametrize("name", ["hocr", "alto"])
def test_xml_formats_stay_whole_whatever_text_and_name_say(name: ExportFormat) -> None:
    pages = [page_of([*HOSTILE])]
    written = write(name, *pages, filename="a\"; bbox 1 2 3 4; 'x' <&>\x01\ud800.pdf")

    root, words = (
        (check_alto(written), alto_words) if name == "alto" else (check_hocr(written), hocr_words)
    )
    legal = [
        word.translate({0: None, 7: None, 0xD800: None, 0xFFFF: None}) for word in words_of(pages)
    ]
    assert words(root) == legal
    assert not root.xpath("//*[local-name()='script']")


def test_a_file_name_cannot_end_its_property_in_hocr() -> None:
    root = check_hocr(write("hocr", PAGES[0], filename='a"; bbox 1 2 3 4.pdf'))

    page = root.xpath("//*[@class='ocr_page']")[0]
    assert page.get("title").split(";")[0] == 'image "a__ bbox 1 2 3 4.pdf"'
    assert page.get("title").split(";")[1] == " bbox 0 0 1654 2339"


def test_csv_computes_nothing_and_has_every_line() -> None:
    rows = csv_rows(write("csv", page_of([*HOSTILE]), FAILED))

    assert [row["text"] for row in rows][2] == '\'=HYPERLINK("http://evil") @x'
    assert len(rows) == len(HOSTILE) + 1
    assert (rows[-1]["page_state"], rows[-1]["text"]) == ("failed", "")
    assert "(damaged)" in rows[-1]["notice"]
    assert (rows[0]["x_min"], rows[0]["y_max"], rows[0]["page_width_px"]) == (
        "10.0",
        "30.0",
        "1654",
    )


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\uff1d1+1", "\u00a0=1"])
def test_each_beginning_of_a_formula_is_made_text(text: str) -> None:
    (row,) = csv_rows(write("csv", page_of([text])))

    assert row["text"] == f"'{text}"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("x;=1+1;y", "x;'=1+1;y"),
        ("x; -1", "x;' -1"),
        ("x\t@y", "x\t'@y"),
        ("x\n=1", "x\n'=1"),
        ("=1;=2", "'=1;'=2"),
        ("x; y = 1 - 2", "x; y = 1 - 2"),
    ],
)
def test_a_formula_behind_what_separates_cells_elsewhere_is_made_text(text: str, cell: str) -> None:
    assert harmless_cell(text) == cell


def test_a_page_without_text_has_a_row_and_an_element() -> None:
    blank = page_of()

    (row,) = csv_rows(write("csv", blank))
    assert (row["page_number"], row["page_state"], row["line"]) == ("1", "ok", "")
    assert alto_words(check_alto(write("alto", blank))) == []
    assert hocr_words(check_hocr(write("hocr", blank))) == []


def test_markdown_shows_text_as_it_is() -> None:
    assert write(
        "markdown", page_of([*HOSTILE[:1], *HOSTILE[4:6], "- x", "two_words"]), FAILED
    ) == (
        "# scan.pdf\n\n## Page 1\n\n"
        "&lt;script&gt;alert('1')&lt;/script&gt; &amp; \"quotes\"\n"
        "\\# no heading \\*nor\\* \\_emphasis\\_ \\[link\\](http://x) \\`code\\`\n"
        "1\\. no list\n"
        "\\- x\n"
        "two\\_words\n"
        "\n## Page 2\n\n"
        "> Page 2 has no result (damaged): The page is &lt;damaged&gt; &amp; cannot be decoded.\n"
    )


def test_text_and_json_of_all_pages_are_those_of_the_result() -> None:
    result = result_of(*PAGES)

    assert write("text", *PAGES) == result["full_text"]
    assert json.loads(write("json", *PAGES)) == result


def test_json_of_some_pages_is_a_result_of_the_published_schema() -> None:
    header, pages = split_result(result_of(*PAGES))

    some = json.loads("".join(TEXT_WRITERS["json"](header, pages[1:])))

    require_valid(some)
    assert some["full_text"] == "\ffive"
    assert [page["page_number"] for page in some["pages"]] == [2, 3]


def test_a_line_that_runs_down_has_an_angle_and_one_from_the_right_a_direction() -> None:
    down = placed_line(
        "縦書", [[100, 50], [100, 90], [80, 90], [80, 50]],
        [("縦", [80, 50, 100, 70]), ("書", [80, 70, 100, 90])],
    )  # fmt: skip
    right = placed_line(
        "טוב בוקר", [[10, 200], [90, 200], [90, 220], [10, 220]],
        [("טוב", [50, 200, 90, 220]), ("בוקר", [10, 200, 45, 220])],
    )  # fmt: skip
    root = check_hocr(write("hocr", page_with_lines(down, right)))

    first, second = root.xpath("//*[@class='ocr_line']")
    assert "textangle 270" in first.get("title")
    assert "".join(first.itertext()).strip() == "縦書"
    assert second.get("dir") == "rtl"
    assert "".join(second.itertext()).strip() == "טוב בוקר"


def test_a_word_that_leaves_the_page_or_its_line_is_kept_inside_its_parents() -> None:
    line = placed_line(
        "wide", [[990, 10], [1005, 10], [1005, 30], [990, 30]], [("wide", [980, 5, 1010, 31])]
    )
    root = check_hocr(write("hocr", page_with_lines(line)))

    (word,) = root.xpath("//*[@class='ocrx_word']")
    assert bbox_of(word) == (980, 5, 1000, 31)


def test_a_line_whose_words_are_not_all_of_its_text_is_one_word() -> None:
    line = placed_line(
        "three words here", [[10, 10], [90, 10], [90, 30], [10, 30]], [("words", [40, 10, 60, 30])]
    )

    assert alto_words(check_alto(write("alto", page_with_lines(line)))) == ["three words here"]
