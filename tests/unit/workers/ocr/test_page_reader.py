from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.engines import NumberingEngine
from tests.support.fake_sessions import InkDetector, InkReader, gray_of, ink_bundle
from workers.ocr.engine import OcrEngine
from workers.ocr.geometry import Box, Quad
from workers.ocr.modes import Route
from workers.ocr.page_image import PageFailure
from workers.ocr.page_reader import PageReader
from workers.ocr.rendered_page import RenderedPage
from workers.ocr.result import Block, PageResult, Word
from workers.ocr.routing import RouteDecision
from workers.ocr.text_layer import TextLayer, layer_line

LETTER = 8
REGION = Box(100, 200, 300, 300)


def stated(text: str, x: float, y: float) -> TextLayer:
    box = Box(x, y, x + 80, y + 48)
    corners = [(x, y), (x + 80, y), (x + 80, y + 48), (x, y + 48)]
    line = layer_line(text, Quad(np.array(corners, np.float32)), (Word(text, box),))
    return TextLayer((line,), (Block((0,)),))


def page(
    page_index: int,
    route: Route,
    *,
    layer: TextLayer | None = None,
    regions: tuple[Box, ...] = (),
) -> RenderedPage:
    pixels = np.full((400, 400, 3), 255, np.uint8)
    return RenderedPage(
        page_index=page_index,
        width_px=400,
        height_px=400,
        dpi=100.0,
        rotation_deg=90,
        render_s=0.5,
        decision=RouteDecision(route, "sound_layer", regions),
        pixels=pixels if route in {"ocr", "mixed"} else None,
        layer=layer or TextLayer(),
    )


def printed(target: RenderedPage, letter: str, x: int, y: int) -> RenderedPage:
    assert target.pixels is not None
    target.pixels[y : y + 48, x : x + 10 * LETTER] = gray_of(letter)
    return target


@pytest.fixture
def ink_reader() -> PageReader:
    return PageReader(OcrEngine(ink_bundle(), sessions=(InkDetector(), InkReader())))


def texts(result: PageResult | PageFailure) -> list[str]:
    assert isinstance(result, PageResult)
    return [line.text for line in result.lines]


def test_pages_come_out_in_order_whatever_their_route() -> None:
    failure = PageFailure(3, "damaged", "")
    routes: list[Route] = ["text", "ocr", "blank"]
    pages = [*(page(index, route) for index, route in enumerate(routes)), failure, page(4, "ocr")]

    outcomes = list(PageReader(NumberingEngine()).read_pages(pages))

    assert [outcome.page_index for outcome in outcomes] == [0, 1, 2, 3, 4]
    assert outcomes[3] is failure
    assert [each.route for each in outcomes if isinstance(each, PageResult)] == [*routes, "ocr"]


def test_a_text_page_comes_out_before_the_next_page_is_asked_for() -> None:
    asked = []

    def pages() -> Iterator[RenderedPage]:
        for index in range(3):
            asked.append(index)
            yield page(index, "text")

    next(PageReader(NumberingEngine()).read_pages(pages()))

    assert asked == [0]


def test_a_text_page_has_what_the_file_states() -> None:
    (result,) = PageReader(NumberingEngine()).read_pages([
        page(0, "text", layer=stated("hello", 10, 10))
    ])

    assert texts(result) == ["hello"]
    assert isinstance(result, PageResult)
    assert (result.rotation_deg, result.seconds.render, result.mean_confidence) == (90, 0.5, 1.0)


def test_a_blank_page_is_a_result_without_lines() -> None:
    (result,) = PageReader(NumberingEngine()).read_pages([page(0, "blank")])

    assert texts(result) == []


def test_a_recognized_page_says_why() -> None:
    (result,) = PageReader(NumberingEngine()).read_pages([page(0, "ocr")])

    assert isinstance(result, PageResult)
    assert result.route_reason == "sound_layer"


def test_a_mixed_page_has_both_texts_once(ink_reader: PageReader) -> None:
    mixed = page(0, "mixed", layer=stated("hello", 120, 100), regions=(REGION,))
    printed(printed(mixed, "A", 120, 100), "B", 120, 220)

    (result,) = ink_reader.read_pages([mixed])

    assert texts(result)[0] == "hello"
    assert set("".join(texts(result)[1:])) == {"B"}
    assert isinstance(result, PageResult)
    assert (result.route, result.width_px, result.height_px) == ("mixed", 400, 400)


def test_stated_words_in_an_image_are_not_recognized_again(ink_reader: PageReader) -> None:
    mixed = page(0, "mixed", layer=stated("typed", 120, 220), regions=(REGION,))
    printed(mixed, "A", 120, 220)

    (result,) = ink_reader.read_pages([mixed])

    assert texts(result) == ["typed"]


def test_recognized_lines_lie_where_the_image_is(ink_reader: PageReader) -> None:
    mixed = printed(page(0, "mixed", regions=(REGION,)), "B", 120, 220)

    (result,) = ink_reader.read_pages([mixed])

    assert isinstance(result, PageResult)
    box = result.lines[0].quad.box
    assert box.x_min <= 125
    assert box.x_max >= 195
    assert 190 <= box.y_min <= 235
    assert 190 <= result.lines[0].words[0].box.y_min <= 240


class SureReader(InkReader):
    """Is sure of everything."""

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        return (super().run(pixels, widths_px) > 0).astype(np.float32)


def test_a_low_image_on_a_page_is_read_without_detection() -> None:
    detector = InkDetector()
    reader = PageReader(OcrEngine(ink_bundle(), sessions=(detector, SureReader())))
    mixed = page(0, "mixed", regions=(Box(100, 200.5, 300, 232.5),))
    assert mixed.pixels is not None
    mixed.pixels[204:228, 120:280] = gray_of("B")

    (result,) = reader.read_pages([mixed])

    assert not detector.shapes
    assert set("".join(texts(result))) == {"B"}
    assert isinstance(result, PageResult)
    box = result.lines[0].quad.box
    assert (box.x_min, box.y_min) == pytest.approx((120, 204), abs=5)
    assert (box.x_max, box.y_max) == pytest.approx((280, 228), abs=5)


def test_a_mixed_page_that_cannot_be_recognized_fails() -> None:
    class Refusing(NumberingEngine):
        def read_pages(self, pages):  # noqa: ANN001, ANN202 - as its base
            for each in pages:
                yield PageFailure(each.page_index, "gpu_out_of_memory", "")

    (outcome,) = PageReader(Refusing()).read_pages([page(0, "mixed", regions=(REGION,))])

    assert outcome == PageFailure(0, "gpu_out_of_memory", "")
