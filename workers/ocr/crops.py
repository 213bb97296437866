"""Choosing which text lines are recognized, and cutting them out of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.detection import Detection
from workers.ocr.geometry import Quad

# From this ratio of height to width a line probably reads downwards; up to the second it may as
# well be a single upright letter, and both readings are tried.
_TALL_RATIO: Final = 1.5
_SURELY_TALL_RATIO: Final = 2.5
# A tall quad this small on its short side is too little to be sure of.
_SMALL_SIDE_PX: Final = 10.0
# Corners that stray less than this from their upright box are cut by slicing.
_UPRIGHT_TOLERANCE_PX: Final = 1.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The detections that are recognized, in detection order, and how many there were."""

    kept: tuple[Detection, ...]
    found_count: int

    @property
    def is_truncated(self) -> bool:
        return len(self.kept) < self.found_count


@dataclass(frozen=True, slots=True)
class Crop:
    """One rectified text line.

    Attributes:
        pixels: (crop height of the model, W, 3) uint8 RGB, crop pixels.
        quad: where it lies on the page; corner 0 is the crop's top-left.
    """

    pixels: NDArray[np.uint8]
    quad: Quad


def select_detections(detections: Sequence[Detection], max_count: int) -> Selection:
    """Keep the detections with the greatest score times area.

    Detectors list regions from one edge of the page to the other, so a plain cut would lose a
    whole part of the page. Of equals the first stays.

    Args:
        detections: all that were found.
        max_count: how many are recognized at most, positive.
    """
    weights = [-d.detection_score * d.quad.area for d in detections]
    kept = np.sort(np.argsort(weights, kind="stable")[:max_count])
    return Selection(tuple(detections[i] for i in kept), len(detections))


def run_downwards(quads: Sequence[Quad]) -> bool:
    """Tell whether the lines of a page mostly read downwards, by the lengths of wide and tall."""
    return (
        sum(
            quad.height if quad.height > quad.width else -quad.width
            for quad in quads
            if not 1 / _TALL_RATIO < quad.height / max(quad.width, 1e-6) < _TALL_RATIO
        )
        > 0
    )


def reading_quads(quad: Quad, *, among_downward: bool = False) -> tuple[Quad, ...]:
    """Return the ways in which a detected quad may be read, the likely one first.

    A wide quad reads along its width. A tall one is a line that reads downwards, as vertical
    Japanese does, or a single letter such as "I", which has the same shape when it is small.

    Args:
        quad: as detected, reading to the right.
        among_downward: whether it stands among lines that read downwards, where a nearly square
            one is often the end of a sentence, a character and its full stop.
    """
    ratio = quad.height / max(quad.width, 1e-6)
    if ratio < (1 / _TALL_RATIO if among_downward else _TALL_RATIO):
        return (quad,)
    if ratio < _SURELY_TALL_RATIO or quad.width < _SMALL_SIDE_PX:
        return (quad, quad.turned())
    return (quad.turned(),)


def limited_readings(
    readings: Sequence[tuple[Quad, ...]], max_count: int
) -> list[tuple[Quad, ...]]:
    """Hold the crops of a page to a number: second looks are given up, in order, and no line is.

    Args:
        readings: for each kept line the ways in which it may be read, the likely one first.
        max_count: of all crops together; at least the number of lines.
    """
    spare = max_count - len(readings)
    limited = []
    for quads in readings:
        second_looks = min(len(quads) - 1, spare)
        spare -= second_looks
        limited.append(quads[: 1 + second_looks])
    return limited


def cut_crop(pixels: NDArray[np.uint8], quad: Quad, height_px: int) -> Crop:
    """Cut one text line out of a page and bring it to the recognizer's height.

    Args:
        pixels: (H, W, 3) uint8 RGB, page pixels.
        quad: the line on the page.
        height_px: of the crop; its width keeps the quad's proportions and is at least 1.
    """
    rectified = _slice_upright(pixels, quad)
    if rectified is None:
        rectified = _warp(pixels, quad)
    width_px = max(1, round(quad.width * height_px / max(quad.height, 1e-6)))
    shrinks = rectified.shape[0] > height_px
    resized = cv2.resize(
        rectified,
        (width_px, height_px),
        interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR,
    )
    return Crop(np.asarray(resized, dtype=np.uint8), quad)


def _slice_upright(pixels: NDArray[np.uint8], quad: Quad) -> NDArray[np.uint8] | None:
    """Cut a quad whose sides run along the page's, None for any other."""
    box = quad.box
    for turns in range(4):
        upright = np.roll(
            np.array([
                (box.x_min, box.y_min),
                (box.x_max, box.y_min),
                (box.x_max, box.y_max),
                (box.x_min, box.y_max),
            ]),
            -turns,
            axis=0,
        )
        if np.abs(quad.corners - upright).max() < _UPRIGHT_TOLERANCE_PX:
            height_px, width_px = pixels.shape[:2]
            x_start = min(max(round(box.x_min), 0), width_px - 1)
            y_start = min(max(round(box.y_min), 0), height_px - 1)
            x_stop = max(min(round(box.x_max), width_px), x_start + 1)
            y_stop = max(min(round(box.y_max), height_px), y_start + 1)
            return np.rot90(pixels[y_start:y_stop, x_start:x_stop], turns)
    return None


def _warp(pixels: NDArray[np.uint8], quad: Quad) -> NDArray[np.uint8]:
    """Rectify a quad at the page's own resolution."""
    width_px = max(1, round(quad.width))
    height_px = max(1, round(quad.height))
    target = np.array(
        [(0, 0), (width_px, 0), (width_px, height_px), (0, height_px)], dtype=np.float32
    )
    # Cut out first: OpenCV cannot address a strip of more than 32,767 rows or columns.
    box = quad.box
    x_start, y_start = max(int(box.x_min) - 2, 0), max(int(box.y_min) - 2, 0)
    x_stop, y_stop = int(box.x_max) + 3, int(box.y_max) + 3
    # OpenCV counts from pixel centers, quads from pixel edges.
    transform = cv2.getPerspectiveTransform(
        (quad.corners - (x_start + 0.5, y_start + 0.5)).astype(np.float32),
        (target - 0.5).astype(np.float32),
    )
    warped = cv2.warpPerspective(
        pixels[y_start:y_stop, x_start:x_stop],
        transform,
        (width_px, height_px),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.asarray(warped, dtype=np.uint8)
