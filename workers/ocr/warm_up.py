"""Running the shapes of inputs that work will bring before there is any work."""

import logging
import math
import time
from collections.abc import Iterable
from typing import Final

import numpy as np

from workers.ocr.errors import OutOfMemoryError
from workers.ocr.inference import Session

log = logging.getLogger(__name__)

# A slot that is not ready after five minutes is killed and started again, for ever; two models
# warm up in that time. What is left then costs the first pages that bring it.
_LONGEST_S: Final = 90.0


def run_shapes(
    session: Session,
    shapes: Iterable[tuple[int, int, int]],
    *,
    model: str,
    longest_s: float = _LONGEST_S,
) -> None:
    """Run every shape once on blank paper, and log how long that took.

    A shape that does not fit into memory is left out: work halves such a minibatch, or fails the
    one page. Without room for the smallest there is no work, so that ``OutOfMemoryError`` passes
    through, as every other ``InferenceError`` does.

    Args:
        session: of a model.
        shapes: (N, H, W) each, at least one.
        model: what the log calls it.
        longest_s: after so long only the smallest shape is still run.
    """
    started = time.perf_counter()
    # The largest first: what it took from an arena then holds all the others.
    *larger, smallest = sorted(set(shapes), key=lambda shape: (math.prod(shape), shape))[::-1]
    too_large = left = 0
    for shape in larger:
        if time.perf_counter() - started >= longest_s:
            left += 1
            continue
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
            "shapes_left": left,
            "seconds": round(time.perf_counter() - started, 3),
        },
    )


def _run_blank(session: Session, shape: tuple[int, int, int]) -> None:
    session.run(np.full((*shape, 3), 255, dtype=np.uint8))
