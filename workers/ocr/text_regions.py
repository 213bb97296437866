"""From a probability map to quads around text lines (the post-processing of DB detectors)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.geometry import unclipped_size

# Smaller regions are dust: 3 px before they are grown and 5 px after, as in PaddleOCR.
_MIN_REGION_SIDE_PX: Final = 3.0
_MIN_GROWN_SIDE_PX: Final = 5.0


@dataclass(frozen=True, slots=True)
class TextRegion:
    """A rotated rectangle in model pixels and its detection score."""

    corners_model_px: NDArray[np.float32]  # (4, 2), in no special order
    detection_score: float


def find_text_regions(
    probability_map: NDArray[np.float32],
    *,
    pixel_threshold: float,
    box_threshold: float,
    unclip_ratio: float,
    dilation_px: int,
) -> list[TextRegion]:
    """Find the text regions of a probability map.

    Args:
        probability_map: (H, W) float32 in [0, 1], model pixels.
        pixel_threshold: a pixel above it belongs to a region.
        box_threshold: least mean probability inside a region's rectangle.
        unclip_ratio: how far a region is grown back.
        dilation_px: regions are first grown by a square of this side, which closes the gaps
            between the letters of a line; 1 for none.

    Returns:
        Regions in the order of their first pixels from the top; empty on a blank map.

    Source:
        Liao et al. 2020, "Real-time Scene Text Detection with Differentiable Binarization",
        section 3.5.
    """
    text_mask = (probability_map > pixel_threshold).astype(np.uint8)
    if dilation_px > 1:
        square = np.ones((dilation_px, dilation_px), dtype=np.uint8)
        text_mask = np.asarray(cv2.dilate(text_mask, square), dtype=np.uint8)
    regions = []
    for outline in _outer_outlines(text_mask):
        center, size, angle_deg = cv2.minAreaRect(outline)
        if min(size) < _MIN_REGION_SIDE_PX:
            continue
        rectangle = np.asarray(cv2.boxPoints((center, size, angle_deg)), dtype=np.float32)
        score = _mean_inside(probability_map, rectangle)
        if score < box_threshold:
            continue
        grown = unclipped_size(size[0], size[1], unclip_ratio)
        if min(grown) < _MIN_GROWN_SIDE_PX:
            continue
        # Outlines run through pixel centers, coordinates count from the pixels' edges.
        corners = cv2.boxPoints((center, grown, angle_deg)) + 0.5
        regions.append(TextRegion(corners.astype(np.float32), score))
    regions.reverse()  # OpenCV lists outlines from the bottom
    return regions


def _outer_outlines(text_mask: NDArray[np.uint8]) -> Iterator[NDArray[np.int32]]:
    """Yield the outline of each connected region, also of one that lies in another's hole."""
    outlines, hierarchy = cv2.findContours(text_mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    if not outlines:
        return
    parents = np.asarray(hierarchy).reshape(-1, 4)[:, 3]
    for outline, parent in zip(outlines, parents, strict=True):
        if parent < 0:
            yield np.asarray(outline, dtype=np.int32)


def _mean_inside(probability_map: NDArray[np.float32], corners: NDArray[np.float32]) -> float:
    height, width = probability_map.shape
    x_min, y_min = np.clip(np.floor(corners.min(axis=0)).astype(int), 0, (width - 1, height - 1))
    x_max, y_max = np.clip(np.ceil(corners.max(axis=0)).astype(int), 0, (width - 1, height - 1))
    inside = np.zeros((y_max - y_min + 1, x_max - x_min + 1), dtype=np.uint8)
    cv2.fillPoly(inside, [np.round(corners - (x_min, y_min)).astype(np.int32)], (1,))
    return float(cv2.mean(probability_map[y_min : y_max + 1, x_min : x_max + 1], inside)[0])
