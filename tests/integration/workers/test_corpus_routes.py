"""Other people's PDFs, each on the route that gets its text."""

from collections.abc import Iterator

import pytest

from tests.support.corpus import require_corpus
from workers.ocr.page_image import PageFailure
from workers.page_renderer import PageRenderer, RenderLimits

ROUTES = {
    "truetype_font_nomapping.pdf": ["ocr unmapped_font"],
    "invisible_text_layer.pdf": ["ocr invisible_text"],
    "no_text_layer.pdf": ["ocr no_layer"],
    "sandwich.pdf": ["ocr invisible_text"],
    "jbig2global.pdf": ["ocr invisible_text"],
    "scan-bad.pdf": ["ocr invisible_text"],
    "bug1978317.pdf": ["ocr implausible_text"],
    "stamps.pdf": ["ocr no_layer"],
    "acroform.pdf": ["ocr no_layer"],
    "rotated_skew.pdf": ["ocr no_layer"],
    "bug900822.pdf": ["mixed image_regions"],
    "multi-page-mixed.pdf": ["ocr no_layer"] * 3 + ["text sound_layer"] * 3,
    "hello_world_rotated.pdf": ["text sound_layer"] * 5,
    "noembed-sjis.pdf": ["text sound_layer"],
    "right_to_left_01.pdf": ["text sound_layer"],
    "with-form.pdf": ["text sound_layer"],
    "cropbox_offset.pdf": ["text sound_layer"],
    "issue14497.pdf": ["text sound_layer"],
}
TEXTS = {
    "noembed-sjis.pdf": ["あいうえお"],
    "vertical.pdf": ["あいうえお", "日本語"],
    "hello_world_rotated.pdf": ["Hello world"],
}


@pytest.fixture(scope="module")
def renderer() -> Iterator[PageRenderer]:
    with PageRenderer(RenderLimits()) as made:
        yield made


def routes_of(renderer: PageRenderer, name: str) -> list[str]:
    page_count = renderer.open(require_corpus(name)).page_count
    return [
        page.code
        if isinstance(page, PageFailure)
        else f"{page.decision.route} {page.decision.reason}"
        for page in renderer.pages(range(page_count), dpi=200, mode="auto")
    ]


@pytest.mark.parametrize(("name", "routes"), ROUTES.items())
def test_a_page_takes_the_route_that_gets_its_text(
    renderer: PageRenderer, name: str, routes: list[str]
) -> None:
    assert routes_of(renderer, name) == routes


@pytest.mark.parametrize(("name", "texts"), TEXTS.items())
def test_a_layer_is_read(renderer: PageRenderer, name: str, texts: list[str]) -> None:
    renderer.open(require_corpus(name))

    page = renderer.render(0, dpi=200, mode="auto")

    assert [line.text for line in page.layer.lines] == texts


def test_arabic_is_read_from_the_right(renderer: PageRenderer) -> None:
    """With ligatures in their order, and Latin words where they are read."""
    renderer.open(require_corpus("right_to_left_01.pdf"))

    page = renderer.render(0, dpi=200, mode="auto")

    assert page.layer.lines[0].text == (
        "تحسين الإنتاجية وحل المشكلات من خلال البرمجة بلغة R وPython"
    )
    assert len(page.layer.lines) == 16


def test_text_lies_where_the_page_shows_it(renderer: PageRenderer) -> None:
    renderer.open(require_corpus("issue14497.pdf"))
    taken = renderer.render(0, dpi=100, mode="auto")
    drawn = renderer.render(0, dpi=100).pixels

    assert drawn is not None
    for line in taken.layer.lines:
        for word in line.words:
            box = word.box
            part = drawn[int(box.y_min) : int(box.y_max), int(box.x_min) : int(box.x_max)]
            assert part.min() < 128, word.text
