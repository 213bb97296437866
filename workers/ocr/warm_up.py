"""Running the shapes of inputs that work will bring before there is any work."""

import logging
import math
import time
from collections.abc import Iterable

import numpy as np

from workers.ocr.errors import OutOfMemoryError
from workers.ocr.inference import Session

log = logging.getLogger(__name__)


def run_shapes(session: Session, shapes: Iterable[tuple[int, int, int]], *, model: str) -> None:
    """Run every shape once on blank paper, and log how long that took.

    A shape that does not fit into memory is left out: work halves such a minibatch, or fails the
    one page. Without room for the smallest there is no work, so that ``OutOfMemoryError`` passes
    through, as every other ``InferenceError`` does.

    Args:
        session: of a model.
        shapes: (N, H, W) each, at least one.
        model: what the log calls it.
    """
    started = time.perf_counter()
    # The largest first: what it took from an arena then holds all the others.
    *larger, smallest = sorted(set(shapes), key=lambda shape: (math.prod(shape), shape))[::-1]
    too_large = 0
    for shape in larger:
        try:
            _run_blank(session, shape)
        except OutOfMemoryError:
            too_large += 1
    _run_blank(session, smallest)
    log.info(
        "model warmed up",
        extra={
            "model": model,
            "shapes": len(larger) + 1,
            "shapes_too_large": too_large,
            "seconds": round(time.perf_counter() - started, 3),
        },
    )


def _run_blank(session: Session, shape: tuple[int, int, int]) -> None:
    session.run(np.full((*shape, 3), 255, dtype=np.uint8))
