import numpy as np

from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.reduced_page import reduce_image_page, warn_of_reduction
from workers.ocr.rendered_page import RenderedPage, from_image
from workers.ocr.result import PageResult, page_json
from workers.ocr.routing import RouteDecision


def page_of(pixels: np.ndarray) -> RenderedPage:
    return from_image(PageImage(0, pixels, dpi=200.0), RouteDecision("ocr", "image_file"))


def test_both_sides_are_halved_and_what_was_there_is_there() -> None:
    pixels = np.full((7, 4, 3), 255, np.uint8)
    pixels[:, 2:] = 0

    page = reduce_image_page(page_of(pixels))

    assert (page.width_px, page.height_px, page.dpi) == (2, 3, 100.0)
    assert page.image.pixels.dtype == np.uint8
    assert page.image.pixels[:, :, 0].tolist() == [[255, 0]] * 3


def test_a_page_of_one_pixel_stays_one() -> None:
    page = reduce_image_page(page_of(np.zeros((1, 1, 3), np.uint8)))

    assert page.image.pixels.shape == (1, 1, 3)


def test_a_page_that_was_not_drawn_is_halved_without_pixels() -> None:
    image = PageImage(0, np.zeros((8, 6, 3), np.uint8), dpi=200.0)

    page = reduce_image_page(from_image(image, RouteDecision("blank", "no_ink")))

    assert (page.width_px, page.height_px, page.pixels) == (3, 4, None)


def test_results_say_it_and_failures_pass() -> None:
    result = PageResult(0, 1, 1, 100.0, 0, 0.0, 0, 0, (), ())
    failure = PageFailure(1, "damaged", "x")

    warned, failed = warn_of_reduction(iter([result, failure]))

    assert page_json(warned)["warnings"] == ["reduced_resolution"]
    assert failed is failure
    assert "warnings" not in page_json(result)
