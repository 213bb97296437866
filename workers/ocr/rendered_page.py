"""One page as it comes from its file: sent on a route, with the pixels and the text for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from workers.ocr.modes import Route, RouteReason
from workers.ocr.page_image import PageImage
from workers.ocr.routing import RouteDecision
from workers.ocr.text_layer import TextLayer, box_from_json, layer_from_json, layer_to_json

DRAWN_ROUTES: Final = frozenset({"ocr", "mixed"})
"""Routes for which a page is drawn; the others need no pixels."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page the way a reader holds it: /Rotate or EXIF orientation is applied already.

    Attributes:
        page_index: 0-based position in the document.
        width_px: of the upright page image, whether it was drawn or not.
        height_px: likewise.
        dpi: resolution of the page image; below the wanted one where the pixel cap asked for it,
            up to a quarter above it where a scan's own pixels were taken.
        rotation_deg: 0, 90, 180 or 270: how far clockwise the stored page was turned.
        render_s: seconds spent on reading, rendering or decoding.
        decision: the page's route.
        pixels: (H, W, 3) uint8 RGB, page pixels; None on the routes ``text`` and ``blank``.
        layer: what the file states and a reader sees; empty on the routes ``ocr`` and ``blank``.
    """

    page_index: int
    width_px: int
    height_px: int
    dpi: float
    rotation_deg: int
    render_s: float
    decision: RouteDecision
    pixels: NDArray[np.uint8] | None = None
    layer: TextLayer = field(default_factory=TextLayer)

    @property
    def image(self) -> PageImage:
        """The page as pixels.

        Raises:
            ValueError: its route needs none, so it has none.
        """
        if self.pixels is None:
            raise ValueError(f"page index {self.page_index} was not drawn")
        return PageImage(self.page_index, self.pixels, self.dpi, self.rotation_deg, self.render_s)


def from_image(image: PageImage, decision: RouteDecision) -> RenderedPage:
    """Make a page of its image; without the pixels where the route needs none."""
    return RenderedPage(
        page_index=image.page_index,
        width_px=image.width_px,
        height_px=image.height_px,
        dpi=image.dpi,
        rotation_deg=image.rotation_deg,
        render_s=image.render_s,
        decision=decision,
        pixels=image.pixels if decision.route in DRAWN_ROUTES else None,
    )


def page_to_json(page: RenderedPage) -> dict[str, Any]:
    """Return all of a page but its index and its pixels as plain values."""
    return {
        "width_px": page.width_px,
        "height_px": page.height_px,
        "dpi": page.dpi,
        "rotation_deg": page.rotation_deg,
        "render_s": page.render_s,
        "route": page.decision.route,
        "route_reason": page.decision.reason,
        "regions": [[box.x_min, box.y_min, box.x_max, box.y_max] for box in page.decision.regions],
        "layer": layer_to_json(page.layer),
    }


def page_from_json(
    page_index: int,
    values: dict[str, Any],
    *,
    take_pixels: Callable[[int, int], NDArray[np.uint8]],
) -> RenderedPage:
    """Make a page of what ``page_to_json`` gave, trusting nothing of it.

    Args:
        page_index: of the page that was asked for.
        values: a decoded JSON object.
        take_pixels: gives (H, W, 3) uint8 RGB for a width and a height, where the page was drawn.

    Raises:
        ValueError: the values are no page.
    """
    try:
        size = {"width_px": int(values["width_px"]), "height_px": int(values["height_px"])}
        route, reason = values["route"], values["route_reason"]
        if route not in get_args(Route) or reason not in get_args(RouteReason):
            raise ValueError("there is no such route or reason")
        regions = tuple(box_from_json(region, **size) for region in values["regions"])
        if (route == "mixed") != bool(regions):
            raise ValueError("regions belong to mixed pages, and these have some")
        return RenderedPage(
            page_index=page_index,
            **size,
            dpi=float(values["dpi"]),
            rotation_deg=int(values["rotation_deg"]),
            render_s=float(values["render_s"]),
            decision=RouteDecision(route, reason, regions),
            pixels=take_pixels(*size.values()) if route in DRAWN_ROUTES else None,
            layer=layer_from_json(values["layer"], **size),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError("these values are no page") from error
