"""Turning a page so that its text stands upright, and finding its lines there.

The classifier's answer "upright" is taken where it is sure. Any other answer has to be borne out
by the page's own lines: some of the longest are read in both directions along their axis. What
cannot be told apart by direction, writing that runs downwards and a page that was turned by a
quarter, is told apart by reading the characters one by one (``workers.ocr.vertical_text``).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.crops import cut_crop
from workers.ocr.detection import Detection
from workers.ocr.errors import InferenceError
from workers.ocr.geometry import Quad
from workers.ocr.orientation import QUARTER_TURNS, OrientationClassifier
from workers.ocr.page_image import PageImage
from workers.ocr.recognition import RecognizedLine
from workers.ocr.scripts import is_spaced_script
from workers.ocr.vertical_text import set_in_row

# So many lines are read, each this far at most: about 1 % of a page's recognition.
_SAMPLE_LINES: Final = 5
_SAMPLE_WIDTH_PX: Final = 400
# A line shows its axis when it is this much longer than high.
_MIN_ASPECT: Final = 2.0
# Upright text is read with 0.9 and more, the same upside down with 0.3 to 0.78.
_MIN_CONFIDENCE: Final = 0.8
_MIN_LEAD: Final = 0.1
# Share of characters that both readings of a downward line have in common: 0.6 and more where
# they stand upright, under 0.2 where the page was turned.
_MIN_AGREEMENT: Final = 0.35

_Readings = Sequence[RecognizedLine | InferenceError]
Detect = Callable[[NDArray[np.uint8]], Sequence[Detection]]
Recognize = Callable[[Sequence[NDArray[np.uint8]]], _Readings]


@dataclass(frozen=True, slots=True)
class UprightPage:
    """A page on which text stands upright, and its lines in pixels of that page."""

    page: PageImage
    detections: tuple[Detection, ...]


class PageUprighter:
    """Finds the lines of pages and turns the pages that need it."""

    def __init__(
        self,
        detect: Detect,
        classifier: OrientationClassifier,
        recognize: Recognize,
        crop_height_px: int,
    ) -> None:
        """Bring the models together.

        Args:
            detect: finds the lines on pixels of a page.
            classifier: for the first opinion.
            recognize: reads crops of ``crop_height_px``; for the second opinion.
            crop_height_px: of the recognizer.
        """
        self._detect = detect
        self._classifier = classifier
        self._recognize = recognize
        self._crop_height_px = crop_height_px

    def warm_up(self) -> None:
        self._classifier.warm_up()

    def find_lines(self, page: PageImage) -> UprightPage:
        """Find the lines of a page, on the page as it stands upright.

        A page without text, or whose text cannot be read in any direction, stays as it is.

        Args:
            page: turned by /Rotate or EXIF already, which are often wrong on scans.

        An ``InferenceError`` of the runtime passes through.
        """
        probabilities = self._classifier.classify(page.pixels)
        likely = int(np.argmax(probabilities))
        is_sure = float(probabilities[likely]) >= self._classifier.sure_from
        # The page is turned back: clockwise by what is missing to a full turn.
        guess = (QUARTER_TURNS - likely) % QUARTER_TURNS if is_sure else 0
        turned = turned_page(page, guess)
        detections = tuple(self._detect(turned.pixels))
        if is_sure and guess == 0:
            return UprightPage(turned, detections)
        missing = self._missing_turns(turned, detections)
        if missing is None:  # nothing was read: only the page as it was stored is certain
            missing = (QUARTER_TURNS - guess) % QUARTER_TURNS
        if missing == 0:
            return UprightPage(turned, detections)
        turned = turned_page(page, guess + missing)
        return UprightPage(turned, tuple(self._detect(turned.pixels)))

    def _missing_turns(self, page: PageImage, detections: Sequence[Detection]) -> int | None:
        """Return the quarter turns clockwise after which the lines read; None: none do."""
        quads = sample_lines([detection.quad for detection in detections])
        if not quads:
            return None
        forward = [self._sample(page, quad) for quad in quads]
        backward = [np.ascontiguousarray(np.rot90(crop, 2)) for crop in forward]
        readings = self._recognize([*forward, *backward])
        lead = _mean_confidence(readings[: len(quads)]) - _mean_confidence(readings[len(quads) :])
        if abs(lead) < _MIN_LEAD:
            return None
        best = readings[: len(quads)] if lead > 0 else readings[len(quads) :]
        if _mean_confidence(best) < _MIN_CONFIDENCE:
            return None
        direction = _quarter(quads[0]) + (0 if lead > 0 else 2)
        if self._is_written_downwards(forward if lead > 0 else backward, best):
            direction -= 1
        return -direction % QUARTER_TURNS

    def _sample(self, page: PageImage, quad: Quad) -> NDArray[np.uint8]:
        width_px = quad.width * self._crop_height_px / max(quad.height, 1.0)
        part = quad.section(0.0, min(1.0, _SAMPLE_WIDTH_PX / max(width_px, 1.0)))
        return cut_crop(page.pixels, part, self._crop_height_px).pixels

    def _is_written_downwards(
        self, crops: Sequence[NDArray[np.uint8]], readings: _Readings
    ) -> bool:
        """Tell whether the characters of these lines stand across the reading direction."""
        texts = _texts(readings)
        unspaced = [
            (crop, text)
            for crop, text in zip(crops, texts, strict=True)
            if sum(not is_spaced_script(character) for character in text) * 2 > len(text)
        ]
        if len(unspaced) * 2 <= len(crops):
            return False  # Latin and its like are not set downwards
        pairs = [(row, text) for crop, text in unspaced if (row := set_in_row(crop)) is not None]
        again = _texts(self._recognize([row for row, _ in pairs]))
        shared = sum(
            (Counter(left) & Counter(right)).total()
            for left, (_, right) in zip(again, pairs, strict=True)
        )
        return shared >= _MIN_AGREEMENT * max(sum(len(text) for _, text in pairs), 1)


def turned_page(page: PageImage, quarter_turns: int) -> PageImage:
    """Return a page turned clockwise by quarters of a full turn."""
    quarter_turns %= QUARTER_TURNS
    if quarter_turns == 0:
        return page
    return replace(
        page,
        pixels=np.ascontiguousarray(np.rot90(page.pixels, -quarter_turns)),
        rotation_deg=(page.rotation_deg + 90 * quarter_turns) % 360,
    )


def sample_lines(quads: Sequence[Quad]) -> list[Quad]:
    """Choose the lines that tell most about a page: the longest along its main axis.

    Args:
        quads: of the page's lines, each reading to the right.

    Returns:
        At most five, all reading to the right or all downwards; none when no line is long.
    """
    lines = [quad.turned() if quad.height > quad.width else quad for quad in quads]
    lines = [line for line in lines if line.width >= _MIN_ASPECT * line.height]
    weight = sum(line.width if _quarter(line) == 0 else -line.width for line in lines)
    axis = 0 if weight >= 0 else 1
    along = [line for line in lines if _quarter(line) == axis]
    return sorted(along, key=lambda line: -line.width)[:_SAMPLE_LINES]


def _quarter(quad: Quad) -> int:
    """Return the reading direction in quarters clockwise from "to the right"."""
    return round(quad.angle_deg / 90) % QUARTER_TURNS


def _texts(readings: _Readings) -> list[str]:
    return ["" if isinstance(reading, InferenceError) else reading.text for reading in readings]


def _mean_confidence(readings: _Readings) -> float:
    return float(
        np.mean([
            0.0 if isinstance(reading, InferenceError) else reading.confidence
            for reading in readings
        ])
    )
