import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from workers.ocr.geometry import Box
from workers.ocr.page_image import PageImage
from workers.ocr.rendered_page import RenderedPage, from_image, page_from_json, page_to_json
from workers.ocr.routing import RouteDecision


def pixels_of(width_px: int, height_px: int) -> NDArray[np.uint8]:
    return np.zeros((height_px, width_px, 3), np.uint8)


def mixed_page() -> RenderedPage:
    decision = RouteDecision("mixed", "image_regions", (Box(1, 2, 30.5, 40),))
    return RenderedPage(3, 60, 50, 99.5, 90, 0.25, decision, pixels_of(60, 50))


def received(values: Any) -> RenderedPage:
    return page_from_json(3, json.loads(json.dumps(values)), take_pixels=pixels_of)


def test_a_page_comes_through_json_as_it_was() -> None:
    sent = mixed_page()

    page = received(page_to_json(sent))

    assert page_to_json(page) == page_to_json(sent)
    assert (page.page_index, page.image.pixels.shape) == (3, (50, 60, 3))


@pytest.mark.parametrize(
    "changes",
    [
        {"route": "fast"},
        {"route_reason": "because"},
        {"route": []},
        {"route": "text"},
        {"regions": []},
        {"regions": [[0, 0, 61, 9]]},
        {"regions": 7},
        {"layer": None},
        {"width_px": None},
        {"width_px": 1e999},
        {"dpi": "sharp"},
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        received({**page_to_json(mixed_page()), **changes})


def test_what_is_missing_is_refused() -> None:
    with pytest.raises(ValueError, match="no page"):
        received({})


def test_a_page_that_was_not_drawn_has_no_image() -> None:
    image = PageImage(0, pixels_of(8, 9), 100.0)

    page = from_image(image, RouteDecision("blank", "no_ink"))

    assert (page.width_px, page.height_px) == (8, 9)
    with pytest.raises(ValueError, match="was not drawn"):
        _ = page.image
