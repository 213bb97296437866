"""Points, quads and boxes, and the conversions between their frames.

Coordinates are continuous, origin top left, y down: the pixel in column 0 covers x from 0 to 1.
A point belongs to one frame and its name says which: ``page_px`` (the upright page image),
``model_px`` (the page after the resize for detection), ``crop_px`` (one rectified text line).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Below this area in square pixels float32 cannot tell one corner order from the other.
_MIN_QUAD_AREA_PX = 1e-3


@dataclass(frozen=True, slots=True)
class Box:
    """An upright rectangle, half-open: ``x_max`` and ``y_max`` are the first outside."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float

    @property
    def width(self) -> float:
        return self.x_max - self.x_min

    @property
    def height(self) -> float:
        return self.y_max - self.y_min


@dataclass(frozen=True, slots=True, eq=False)
class Quad:
    """Four corners around one text line.

    Corners run clockwise from the corner where reading starts: on an upright page top-left,
    top-right, bottom-right, bottom-left, and for a line that reads downwards top-right,
    bottom-right, bottom-left, top-left. So corner 0 to corner 1 is the reading direction.
    """

    corners: NDArray[np.float32]  # (4, 2), columns x, y

    def __post_init__(self) -> None:
        if self.corners.shape != (4, 2):
            raise ValueError(f"a quad has shape (4, 2), got {self.corners.shape}")
        if not np.isfinite(self.corners).all():
            raise ValueError("quad corners are not finite")
        if signed_area(self.corners) <= 0:
            raise ValueError("quad corners are not clockwise")

    @classmethod
    def from_corners(cls, corners: NDArray[np.floating]) -> "Quad":
        """Order four corners of a convex shape and make a quad that reads left to right.

        Of the four clockwise orders the one is taken whose reading direction is nearest to
        "to the right", so a line that is turned by up to 45 degrees keeps its beginning.

        Args:
            corners: (4, 2), any order; a ``ValueError`` when they are not finite or enclose
                no area.
        """
        clockwise = sort_clockwise(np.asarray(corners, dtype=np.float64))
        edges = np.roll(clockwise, -1, axis=0) - clockwise
        rightness = edges[:, 0] / np.maximum(np.hypot(edges[:, 0], edges[:, 1]), 1e-12)
        start = int(np.argmax(np.round(rightness, 9)))
        return cls(np.roll(clockwise, -start, axis=0).astype(np.float32))

    @property
    def width(self) -> float:
        """Mean length of the two edges along the reading direction."""
        return float(_distance(self.corners, 0, 1) + _distance(self.corners, 3, 2)) / 2

    @property
    def height(self) -> float:
        """Mean length of the two edges across the reading direction."""
        return float(_distance(self.corners, 0, 3) + _distance(self.corners, 1, 2)) / 2

    @property
    def area(self) -> float:
        return signed_area(self.corners)

    @property
    def angle_deg(self) -> float:
        """Reading direction, clockwise from "to the right", in (-180, 180]."""
        along = self.corners[1] - self.corners[0] + self.corners[2] - self.corners[3]
        return math.degrees(math.atan2(float(along[1]), float(along[0])))

    @property
    def box(self) -> Box:
        """The smallest upright box around the quad."""
        x_min, y_min = self.corners.min(axis=0).tolist()
        x_max, y_max = self.corners.max(axis=0).tolist()
        return Box(x_min, y_min, x_max, y_max)

    def turned(self) -> "Quad":
        """Return the same shape, read downwards from its second corner."""
        return Quad(np.roll(self.corners, -1, axis=0))

    def section(self, start: float, stop: float) -> "Quad":
        """Return the part between two places along the reading direction.

        Args:
            start: where the part begins, as a fraction of the quad's width in [0, 1].
            stop: where it ends, greater than ``start``.
        """
        top = self.corners[1] - self.corners[0]
        bottom = self.corners[2] - self.corners[3]
        return Quad(
            np.stack((
                self.corners[0] + top * start,
                self.corners[0] + top * stop,
                self.corners[3] + bottom * stop,
                self.corners[3] + bottom * start,
            )).astype(np.float32)
        )


def signed_area(corners: NDArray[np.floating]) -> float:
    """Return the area of a polygon, positive when it runs clockwise (y down).

    Args:
        corners: (N, 2), N at least 3.
    """
    # Taken from the first corner, because far from the origin float32 products cancel badly.
    local = corners.astype(np.float64) - corners[0]
    following = np.roll(local, -1, axis=0)
    return float(np.sum(local[:, 0] * following[:, 1] - local[:, 1] * following[:, 0])) / 2


def sort_clockwise(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Order the four corners of a convex shape clockwise by cross products.

    Sums and differences of coordinates, the common way, give two corners the same place near
    45 degrees. Here the corner with the smallest (x, y) is fixed and the others are ordered by
    the side of one another on which they lie, which holds at any angle.

    Args:
        corners: (4, 2), any order.

    Returns:
        (4, 2), clockwise with y down.

    Raises:
        ValueError: not four corners, not finite, or no area.
    """
    if corners.shape != (4, 2):
        raise ValueError(f"a quad has shape (4, 2), got {corners.shape}")
    if not np.isfinite(corners).all():
        raise ValueError("quad corners are not finite")
    first = int(np.lexsort((corners[:, 1], corners[:, 0]))[0])
    others = [i for i in range(4) if i != first]
    rays = corners[others] - corners[first]
    # For each ray, on how many of the other rays' clockwise side it lies.
    cross = np.outer(rays[:, 0], rays[:, 1]) - np.outer(rays[:, 1], rays[:, 0])
    rank = (cross < 0).sum(axis=1)
    order = [others[i] for i in np.argsort(rank, kind="stable")]
    clockwise = corners[[first, *order]]
    if signed_area(clockwise) < _MIN_QUAD_AREA_PX:
        raise ValueError("quad corners enclose no area")
    return clockwise


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range along one axis, and the part of it that a merge of ranges takes.

    Kept parts of neighboring spans meet, so together they cover an axis once.
    """

    start: int
    stop: int
    kept_start: int
    kept_stop: int


@dataclass(frozen=True, slots=True)
class Fit:
    """How a page was resized for detection: model pixels per page pixel, and the page's size."""

    scale_x: float
    scale_y: float
    page_width_px: int
    page_height_px: int


def model_px_to_page_px(points_model_px: NDArray[np.floating], fit: Fit) -> NDArray[np.float32]:
    """Map points from the detector's frame to the upright page, clipped to the page.

    Args:
        points_model_px: (N, 2), model pixels.
        fit: the resize that made the model's frame.

    Returns:
        (N, 2) float32, page pixels.
    """
    points = points_model_px.astype(np.float64) / (fit.scale_x, fit.scale_y)
    return np.clip(points, 0, (fit.page_width_px, fit.page_height_px)).astype(np.float32)


def page_px_to_model_px(points_page_px: NDArray[np.floating], fit: Fit) -> NDArray[np.float32]:
    """Map points from the upright page to the detector's frame.

    Args:
        points_page_px: (N, 2), page pixels.
        fit: the resize that made the model's frame.

    Returns:
        (N, 2) float32, model pixels.
    """
    return (points_page_px.astype(np.float64) * (fit.scale_x, fit.scale_y)).astype(np.float32)


def rotate_points(points: NDArray[np.floating], angle_deg: float) -> NDArray[np.float64]:
    """Turn points clockwise (y down) around the origin.

    Args:
        points: (..., 2).
        angle_deg: clockwise.

    Returns:
        The same shape, float64.
    """
    cos, sin = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
    turned: NDArray[np.float64] = points.astype(np.float64) @ np.array([[cos, sin], [-sin, cos]])
    return turned


def unturned_points(
    points: NDArray[np.floating], quarter_turns: int, *, width_px: float, height_px: float
) -> NDArray[np.float32]:
    """Map points of an image that was turned back to the image as it was.

    Args:
        points: (..., 2), pixels of the turned image.
        quarter_turns: how far it was turned clockwise.
        width_px: of the turned image.
        height_px: likewise.

    Returns:
        The same shape, float32.
    """
    x, y = points[..., 0], points[..., 1]
    was_x, was_y = (
        (x, y),
        (y, width_px - x),
        (width_px - x, height_px - y),
        (height_px - y, x),
    )[quarter_turns % 4]
    return np.stack((was_x, was_y), axis=-1).astype(np.float32)


def unclipped_size(width: float, height: float, ratio: float) -> tuple[float, float]:
    """Return the size of a rectangle grown back from the detector's shrunk region.

    A polygon is grown by distance = area * ratio / perimeter on every side. For a rectangle the
    outcome is again a rectangle with the same center and angle, so no polygon library is needed.

    Args:
        width: of the shrunk rectangle, positive.
        height: of the shrunk rectangle, positive.
        ratio: the unclip ratio of the model's bundle.

    Source:
        Liao et al. 2020, "Real-time Scene Text Detection with Differentiable Binarization",
        section 3.5 (the offset of the label generation, inverted).
    """
    distance = width * height * ratio / (2 * (width + height))
    return width + 2 * distance, height + 2 * distance


def _distance(corners: NDArray[np.float32], start: int, stop: int) -> float:
    return float(np.hypot(*(corners[stop].astype(np.float64) - corners[start])))
