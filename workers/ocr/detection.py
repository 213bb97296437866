"""Finding the text lines of a page image."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.ocr.bundle import DetectionModel
from workers.ocr.errors import InferenceError
from workers.ocr.geometry import Fit, Quad, Span, model_px_to_page_px
from workers.ocr.inference import Session
from workers.ocr.page_scale import choose_scale, estimate_glyph_height_px, tile_spans
from workers.ocr.text_regions import find_text_regions

# A quad below this is a line that the page's edge cut away.
_MIN_QUAD_AREA_PX = 1.0


@dataclass(frozen=True, slots=True)
class Detection:
    """One text line that was found: its quad in page pixels and its detection score in [0, 1]."""

    quad: Quad
    detection_score: float


class Detector:
    """A detection model behind a session, from page pixels to quads in page pixels."""

    def __init__(self, session: Session, model: DetectionModel) -> None:
        self._session = session
        self._model = model

    def detect(self, pixels: NDArray[np.uint8]) -> list[Detection]:
        """Find text lines.

        Args:
            pixels: (H, W, 3) uint8 RGB, page pixels.

        Returns:
            The lines in no reading order, but always in the same; empty on a blank page.

        An ``InferenceError`` of the runtime passes through.
        """
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
        detections = []
        for region in regions:
            corners = model_px_to_page_px(region.corners_model_px, fit)
            if cv2.contourArea(cv2.convexHull(corners)) >= _MIN_QUAD_AREA_PX:
                detections.append(Detection(Quad.from_corners(corners), region.detection_score))
        return detections

    def warm_up(self) -> None:
        """Run once on a blank input, so that the first page does not pay for the plans."""
        side = self._model.size_multiple * 10
        self._run_tile(np.full((side, side, 3), 255, dtype=np.uint8))

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
        multiple = self._model.size_multiple
        padded = cv2.copyMakeBorder(
            tile, 0, -height % multiple, 0, -width % multiple, cv2.BORDER_REPLICATE
        )
        output = self._session.run(np.asarray(padded, dtype=np.uint8)[np.newaxis])
        if output.shape != (1, 1, *padded.shape[:2]):
            raise InferenceError(f"the detector answered with the shape {output.shape}")
        probabilities: NDArray[np.float32] = output[0, 0, :height, :width]
        return probabilities


def _kept(span: Span) -> slice:
    return slice(span.kept_start - span.start, span.kept_stop - span.start)
