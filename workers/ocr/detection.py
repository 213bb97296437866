"""Finding the text lines of a page image."""

import math
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.bundle import DetectionModel
from workers.ocr.errors import InferenceError
from workers.ocr.geometry import Fit, Quad, Span, model_px_to_page_px
from workers.ocr.inference import Session
from workers.ocr.inked_window import inked_window
from workers.ocr.page_scale import (
    MAX_INPUT_SIDE_PX,
    choose_scale,
    estimate_glyph_height_px,
    tile_spans,
)
from workers.ocr.text_regions import find_text_regions
from workers.ocr.warm_up import run_shapes

# On CUDA the sides of the detector's input are multiples of this, because a device that plans anew
# for every shape should see few: 320 divides both what ordinary pages are scaled to and what the
# largest input is, so there are 25 shapes. Not measured on a GPU yet: a finer step computes less
# padding, and plans more often.
CUDA_SIDE_STEP_PX: Final = 320
# Blank pages of this many smallest sides warm up a device that takes any shape.
_WARM_UP_SIDES: Final = 10
# A quad below this is a line that the page's edge cut away.
_MIN_QUAD_AREA_PX = 1.0


@dataclass(frozen=True, slots=True)
class Detection:
    """One text line that was found: its quad in page pixels and its detection score in [0, 1]."""

    quad: Quad
    detection_score: float


class Detector:
    """A detection model behind a session, from page pixels to quads in page pixels."""

    def __init__(
        self, session: Session, model: DetectionModel, *, side_step_px: int | None = None
    ) -> None:
        """Bring model and session together.

        Args:
            session: runs the model.
            model: of the bundle.
            side_step_px: the input's sides are multiples of this and the model's own; None for
                the model's own alone, so that pages bring shapes without number.
        """
        self._session = session
        self._model = model
        self._has_few_shapes = side_step_px is not None
        self._multiple_px = math.lcm(model.size_multiple, side_step_px or 1)

    def detect(self, pixels: NDArray[np.uint8]) -> list[Detection]:
        """Find text lines.

        Args:
            pixels: (H, W, 3) uint8 RGB, page pixels.

        Returns:
            The lines in no reading order, but always in the same; empty on a blank page.

        An ``InferenceError`` of the runtime passes through.
        """
        rows, columns = inked_window(pixels)
        pixels = np.ascontiguousarray(pixels[rows, columns])
        height_px, width_px = pixels.shape[:2]
        scale = choose_scale(height_px, width_px, estimate_glyph_height_px(pixels))
        frame_width = max(1, round(width_px * scale))
        frame_height = max(1, round(height_px * scale))
        fit = Fit(frame_width / width_px, frame_height / height_px, width_px, height_px)
        shrinks = scale < 1
        frame = cv2.resize(
            pixels,
            (frame_width, frame_height),
            interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR,
        )
        regions = find_text_regions(
            self._probability_map(np.asarray(frame, dtype=np.uint8)),
            pixel_threshold=self._model.pixel_threshold,
            box_threshold=self._model.box_threshold,
            unclip_ratio=self._model.unclip_ratio,
            dilation_px=self._model.dilation_px,
        )
        corner = np.array([columns.start, rows.start], dtype=np.float32)
        detections = []
        for region in regions:
            corners = model_px_to_page_px(region.corners_model_px, fit) + corner
            if cv2.contourArea(cv2.convexHull(corners)) >= _MIN_QUAD_AREA_PX:
                detections.append(Detection(Quad.from_corners(corners), region.detection_score))
        return detections

    def warm_up(self) -> None:
        """Run the shapes that pages will bring, or one where any may come; see ``warm_up``.

        An ``InferenceError`` of the runtime passes through.
        """
        sides = [_WARM_UP_SIDES * self._multiple_px]
        if self._has_few_shapes:
            largest = _round_up(MAX_INPUT_SIDE_PX, self._multiple_px)
            sides = list(range(self._multiple_px, largest + 1, self._multiple_px))
        shapes = [(1, height, width) for height in sides for width in sides]
        run_shapes(self._session, shapes, model="detection")

    def _probability_map(self, frame: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the (H, W) probabilities of a frame, merged from its tiles where it has some."""
        height, width = frame.shape[:2]
        merged = np.empty((height, width), dtype=np.float32)
        for rows in tile_spans(height):
            for columns in tile_spans(width):
                tile = frame[rows.start : rows.stop, columns.start : columns.stop]
                merged[rows.kept_start : rows.kept_stop, columns.kept_start : columns.kept_stop] = (
                    self._run_tile(tile)[_kept(rows), _kept(columns)]
                )
        return merged

    def _run_tile(self, tile: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the (H, W) probabilities of one tile.

        Raises:
            InferenceError: the model's answer does not fit its input.
        """
        height, width = tile.shape[:2]
        padded = cv2.copyMakeBorder(
            tile,
            0,
            _round_up(height, self._multiple_px) - height,
            0,
            _round_up(width, self._multiple_px) - width,
            cv2.BORDER_REPLICATE,
        )
        output = self._session.run(np.asarray(padded, dtype=np.uint8)[np.newaxis])
        if output.shape != (1, 1, *padded.shape[:2]):
            raise InferenceError(f"the detector answered with the shape {output.shape}")
        probabilities: NDArray[np.float32] = output[0, 0, :height, :width]
        return probabilities


def _round_up(side_px: int, multiple_px: int) -> int:
    return -(-side_px // multiple_px) * multiple_px


def _kept(span: Span) -> slice:
    return slice(span.kept_start - span.start, span.kept_stop - span.start)
