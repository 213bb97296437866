"""From a page's crops and what was read in them to the page's result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from workers.ocr.crops import Crop
from workers.ocr.detection import Detection
from workers.ocr.direct_line import is_certain
from workers.ocr.errors import InferenceError, OcrError
from workers.ocr.ink import blank_columns, column_contrast
from workers.ocr.order import order_lines
from workers.ocr.page_image import PageFailure
from workers.ocr.recognition import RecognizedLine
from workers.ocr.result import Block, PageResult, StageSeconds, TextLine, Word
from workers.ocr.spaces import restore_spaces
from workers.ocr.words import place_words

# For the user; what the runtime said stays in the error that a caller may log.
_MESSAGES: Final = {
    "gpu_out_of_memory": (
        "The page needs more memory than the device has left; process it with fewer workers on"
        " the device, or at a lower resolution."
    ),
    "internal": "The page could not be recognized because of an internal error.",
}


@dataclass(frozen=True, slots=True)
class PendingLine:
    """A detected line and its crops, one for each way in which it may be read."""

    detection: Detection
    crops: tuple[Crop, ...]


@dataclass(frozen=True, slots=True)
class PendingPage:
    """A page between detection and recognition; its pixels are gone already.

    Attributes:
        page_index: as of its ``PageResult``, and likewise what is not named here.
        lines: to be read.
        find_lines: detection, for a page that is read without it; see ``direct_line``. It holds
            the page's pixels, which are few.
    """

    page_index: int
    width_px: int
    height_px: int
    dpi: float
    rotation_deg: int
    crops_found: int
    lines: tuple[PendingLine, ...]
    render_s: float
    detect_s: float
    find_lines: "FindLines | None" = None

    @property
    def crops(self) -> tuple[Crop, ...]:
        return tuple(crop for line in self.lines for crop in line.crops)


FindLines = Callable[[], PendingPage | PageFailure]


def page_outcome(
    page: PendingPage, readings: Sequence[RecognizedLine | InferenceError], recognize_s: float
) -> PageResult | PageFailure:
    """Make a page's result from its readings; one line that failed fails the page.

    Args:
        page: whose pixels are gone.
        readings: of ``page.crops``, in their order.
        recognize_s: the page's share of the time that recognition took.
    """
    lines: list[TextLine] = []
    remaining = iter(readings)
    for line in page.lines:
        candidates: list[tuple[Crop, RecognizedLine]] = []
        for crop in line.crops:
            reading = next(remaining)
            if isinstance(reading, InferenceError):
                return page_failure(page.page_index, reading)
            candidates.append((crop, reading))
        crop, reading = _more_certain(candidates)
        if reading.text.strip():
            lines.append(_text_line(crop, reading, line.detection.detection_score))
    return _page_result(page, lines, recognize_s)


def detection_still_due(
    page: PendingPage, readings: Sequence[RecognizedLine | InferenceError]
) -> FindLines | None:
    """Return the detection that a page was read without, where its reading does not stand.

    Args:
        page: on either path.
        readings: as ``page_outcome`` takes them; what failed would fail again.
    """
    is_refuted = any(
        isinstance(reading, RecognizedLine) and not is_certain(reading) for reading in readings
    )
    return page.find_lines if is_refuted else None


def page_failure(page_index: int, error: OcrError) -> PageFailure:
    """Return the failure of a page, with a message for the user."""
    return PageFailure(page_index, error.code, _MESSAGES.get(error.code, _MESSAGES["internal"]))


def _more_certain(candidates: Sequence[tuple[Crop, RecognizedLine]]) -> tuple[Crop, RecognizedLine]:
    """Choose between the ways in which a line may be read; of equals the first.

    Any way but the first needs two characters: a shape with the proportions of a tall line that
    holds one is a single upright letter, and "!" on its side is a very certain "_".
    """
    best = candidates[0]
    for candidate in candidates[1:]:
        is_line = len(candidate[1].text.strip()) > 1
        if is_line and candidate[1].confidence > best[1].confidence:
            best = candidate
    return best


def _page_result(page: PendingPage, lines: Sequence[TextLine], recognize_s: float) -> PageResult:
    order = order_lines([line.quad for line in lines])
    blocks = []
    first = 0
    for block in order.blocks:
        blocks.append(Block(tuple(range(first, first + len(block)))))
        first += len(block)
    return PageResult(
        page_index=page.page_index,
        width_px=page.width_px,
        height_px=page.height_px,
        dpi=page.dpi,
        rotation_deg=page.rotation_deg,
        skew_deg=order.angle_deg - 90 * round(order.angle_deg / 90),
        crops_found=page.crops_found,
        crops_kept=len(page.lines),
        lines=tuple(lines[position] for position in order.lines),
        blocks=tuple(blocks),
        seconds=StageSeconds(page.render_s, page.detect_s, recognize_s),
    )


def _text_line(crop: Crop, reading: RecognizedLine, detection_score: float) -> TextLine:
    is_blank = blank_columns(column_contrast(crop.pixels))
    characters = restore_spaces(reading.characters, is_blank)
    words = tuple(
        Word(word.text, crop.quad.section(word.start, word.stop).box)
        for word in place_words(characters, is_blank)
    )
    return TextLine(
        text="".join(character.text for character in characters).strip(),
        quad=crop.quad,
        confidence=reading.confidence,
        detection_score=detection_score,
        words=words,
    )
