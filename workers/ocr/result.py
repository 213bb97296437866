"""What is known about a page after recognition, and its JSON form (schema ``pagefleet/1``)."""

from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from workers.ocr.geometry import Box, Quad
from workers.ocr.modes import Route, RouteReason
from workers.ocr.page_image import PageFailure
from workers.ocr.page_numbers import page_number

_COORDINATE_DIGITS: Final = 1
_PROBABILITY_DIGITS: Final = 4
_ANGLE_DIGITS: Final = 2
_SECONDS_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Word:
    """One word and the upright box around it, page pixels."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of text.

    Attributes:
        text: never empty.
        quad: page pixels, clockwise from where reading starts.
        confidence: mean probability of the characters, [0, 1].
        detection_score: mean probability of text inside the detected region, [0, 1]; 1 where
            nothing had to be detected.
        words: in reading order.
    """

    text: str
    quad: Quad
    confidence: float
    detection_score: float
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lines that belong together: positions in the page's lines."""

    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """Seconds that one page took in each stage."""

    render: float = 0.0
    detect: float = 0.0
    recognize: float = 0.0


@dataclass(frozen=True, slots=True)
class PageResult:
    """One recognized page.

    Attributes:
        page_index: 0-based position in the document.
        width_px: of the upright page image.
        height_px: likewise.
        dpi: resolution of the page image.
        rotation_deg: how far clockwise the stored page was turned to be upright.
        skew_deg: how far clockwise the text runs from the page's sides.
        crops_found: text lines that detection found, or 1 on the direct path.
        crops_kept: of these, how many were recognized.
        lines: in reading order, without those that turned out to be empty.
        blocks: in reading order; together they hold every line once.
        seconds: what the page took.
        route: how its text was had.
        route_reason: why on that route.
        engine: runtime that recognized it, None where nothing was recognized.
        precision: of that runtime's arithmetic.
        warnings: what a reader should know of it; none where all went as it should.
    """

    page_index: int
    width_px: int
    height_px: int
    dpi: float
    rotation_deg: int
    skew_deg: float
    crops_found: int
    crops_kept: int
    lines: tuple[TextLine, ...]
    blocks: tuple[Block, ...]
    seconds: StageSeconds = field(default_factory=StageSeconds)
    route: Route = "ocr"
    route_reason: RouteReason = "mode"
    engine: str | None = None
    precision: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_truncated(self) -> bool:
        return self.crops_kept < self.crops_found

    @property
    def mean_confidence(self) -> float | None:
        """Mean over the lines, None for a page without text."""
        if not self.lines:
            return None
        return float(np.mean([line.confidence for line in self.lines]))


def page_json(outcome: PageResult | PageFailure) -> dict[str, Any]:
    """Return the page object of ``docs/schema/pagefleet-1.schema.json``.

    Coordinates are upright page pixels with one decimal.
    """
    if isinstance(outcome, PageFailure):
        return {
            "page_number": page_number(outcome.page_index),
            "state": "failed",
            "error": {"code": outcome.code, "message": outcome.message},
        }
    confidence = outcome.mean_confidence
    return {
        "page_number": page_number(outcome.page_index),
        "state": "ok",
        "route": outcome.route,
        "route_reason": outcome.route_reason,
        "engine": outcome.engine,
        "precision": outcome.precision,
        "width_px": outcome.width_px,
        "height_px": outcome.height_px,
        "dpi": round(outcome.dpi, 2),
        "rotation_deg": outcome.rotation_deg,
        "skew_deg": round(outcome.skew_deg, _ANGLE_DIGITS) + 0.0,  # no -0.0
        "crops_found": outcome.crops_found,
        "crops_kept": outcome.crops_kept,
        "truncated": outcome.is_truncated,
        # Left out where there is none, so that such pages are the bytes that they always were.
        **({"warnings": list(outcome.warnings)} if outcome.warnings else {}),
        "mean_confidence": None if confidence is None else round(confidence, _PROBABILITY_DIGITS),
        "seconds": seconds_json(outcome.seconds),
        "blocks": [
            _block_json(block_id, block, outcome.lines)
            for block_id, block in enumerate(outcome.blocks)
        ],
        "lines": [_line_json(line_id, line) for line_id, line in enumerate(outcome.lines)],
        "reading_order": [line for block in outcome.blocks for line in block.lines],
    }


def seconds_json(seconds: StageSeconds) -> dict[str, float]:
    """Return what a page took in each stage, as its page object says it."""
    return {stage: round(spent_s, _SECONDS_DIGITS) for stage, spent_s in asdict(seconds).items()}


def skipped_page_json(page_index: int) -> dict[str, Any]:
    """Return the page object of a page that was left out on request."""
    return {"page_number": page_number(page_index), "state": "skipped"}


def _line_json(line_id: int, line: TextLine) -> dict[str, Any]:
    return {
        "id": line_id,
        "text": line.text,
        "polygon": _polygon_json(line.quad.corners.tolist()),
        "confidence": round(line.confidence, _PROBABILITY_DIGITS),
        "detection_score": round(line.detection_score, _PROBABILITY_DIGITS),
        "words": [{"text": word.text, "box": _box_json(word.box)} for word in line.words],
    }


def _block_json(block_id: int, block: Block, lines: tuple[TextLine, ...]) -> dict[str, Any]:
    boxes = [lines[position].quad.box for position in block.lines]
    x_min = min(box.x_min for box in boxes)
    y_min = min(box.y_min for box in boxes)
    x_max = max(box.x_max for box in boxes)
    y_max = max(box.y_max for box in boxes)
    return {
        "id": block_id,
        "type": "text",
        "polygon": _polygon_json([
            [x_min, y_min],
            [x_max, y_min],
            [x_max, y_max],
            [x_min, y_max],
        ]),
        "lines": list(block.lines),
    }


def _polygon_json(corners: list[list[float]]) -> list[list[float]]:
    return [[round(x, _COORDINATE_DIGITS), round(y, _COORDINATE_DIGITS)] for x, y in corners]


def _box_json(box: Box) -> list[float]:
    return [
        round(value, _COORDINATE_DIGITS) for value in (box.x_min, box.y_min, box.x_max, box.y_max)
    ]
