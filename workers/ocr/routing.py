"""Which way a page goes to its text, and why.

A pure decision over what was found on the page; where in doubt the page is recognized, which costs
time and no text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workers.ocr.geometry import Box
from workers.ocr.modes import Route, RouteReason
from workers.ocr.plausible_text import has_unknown_characters, is_plausible

TEXT_OPERATIONS: Final = frozenset({"fill-text", "stroke-text"})
"""MuPDF's names for operations that draw visible text."""

_INVISIBLE_TEXT: Final = "ignore-text"
# So much of a layer may be at fault before the whole page is recognized.
_MAX_FAULTY_SHARE: Final = 0.1
# An invisible word or two is a label for a screen reader, no old recognition.
_MIN_FAULTY_CHARACTERS: Final = 3
# Shapes that look like letters and are in no layer: fewer are check boxes, bullets and arrows.
_MIN_UNEXPLAINED_SHAPES: Final = 40
_MAX_UNEXPLAINED_SHARE: Final = 0.15


@dataclass(frozen=True, slots=True)
class RouteDecision:
    """A route and its reason; ``regions`` are recognized on the route ``mixed``, page pixels."""

    route: Route
    reason: RouteReason
    regions: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerEvidence:
    """What was found out about a page with a text layer. Counts are characters without spaces.

    Attributes:
        text: that the file draws and that shows.
        invisible: that the file has, but does not draw.
        unmapped: drawn in a font that does not say which characters its codes are.
        inkless: drawn, but nothing shows: white on white, or painted over.
        under_image: drawn, and covered by an image afterwards.
        unexplained_shapes: shapes like letters where neither text nor an image is.
        regions: images with ink that no text explains, page pixels.
    """

    text: str
    invisible: int = 0
    unmapped: int = 0
    inkless: int = 0
    under_image: int = 0
    unexplained_shapes: int = 0
    regions: tuple[Box, ...] = ()


def draws_text(drawn: Sequence[tuple[str, Box]]) -> bool:
    """Whether visible text stands on the page; a hidden layer behind a scan does not count."""
    return any(kind in TEXT_OPERATIONS for kind, _ in drawn)


def decide_early(drawn: Sequence[tuple[str, Box]]) -> RouteDecision | None:
    """Choose the route of a page whose drawing operations tell it already, in mode ``auto``.

    Args:
        drawn: kind and box of each operation, as MuPDF names them.

    Returns:
        None where there is visible text, which has to be weighed.
    """
    if not drawn:
        return RouteDecision("blank", "no_ink")
    if draws_text(drawn):
        return None
    if any(kind == _INVISIBLE_TEXT for kind, _ in drawn):
        return RouteDecision("ocr", "invisible_text")
    return RouteDecision("ocr", "no_layer")


def decide_route(evidence: LayerEvidence) -> RouteDecision:
    """Choose the route of a page that has a text layer, in mode ``auto``."""
    shown = sum(not character.isspace() for character in evidence.text)
    doubt = _doubt(evidence, shown)
    if doubt is not None:
        return RouteDecision("ocr", doubt)
    if evidence.regions:
        return RouteDecision("mixed", "image_regions", evidence.regions)
    return RouteDecision("text", "sound_layer")


def _doubt(evidence: LayerEvidence, shown: int) -> RouteReason | None:  # noqa: PLR0911 - one for each reason
    """Return why the layer is not trusted, None where it is; the most telling reason first."""
    drawn = shown + evidence.inkless
    if _is_much(evidence.invisible, drawn + evidence.invisible) and not (
        # Recognized images on a page that was set: the images are recognized again, no more.
        evidence.regions and shown > evidence.invisible
    ):
        return "invisible_text"
    if _is_much(evidence.under_image, drawn):
        return "text_under_image"
    if _is_much(evidence.inkless, drawn):
        return "text_without_ink"
    if not shown:
        return "no_visible_layer"
    if _is_much(evidence.unmapped, shown):
        return "unmapped_font"
    if has_unknown_characters(evidence.text):
        return "unknown_characters"
    if not is_plausible(evidence.text):
        return "implausible_text"
    if evidence.unexplained_shapes >= max(_MIN_UNEXPLAINED_SHAPES, _MAX_UNEXPLAINED_SHARE * shown):
        return "ink_without_text"
    return None


def _is_much(faulty: int, total: int) -> bool:
    return faulty >= _MIN_FAULTY_CHARACTERS and faulty > _MAX_FAULTY_SHARE * total
