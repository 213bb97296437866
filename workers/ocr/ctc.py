"""From per-step classes to characters with their places (connectionist temporal classification)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLANK = 0
SPACE = " "


@dataclass(frozen=True, slots=True)
class DecodedCharacter:
    """One character and the half-open range of output steps in which it stands.

    ``confidence`` is the probability of its first step, in [0, 1].
    """

    text: str
    step_start: int
    step_stop: int
    confidence: float


def decode_greedy(
    classes: NDArray[np.integer], confidences: NDArray[np.floating], charset: Sequence[str]
) -> tuple[DecodedCharacter, ...]:
    """Read one text line off its best class per step.

    Repeats are merged first and blanks dropped after, so that "l", blank, "l" stays "ll".

    Args:
        classes: (T,) the most probable class of each step; 0 is the blank and class c > 0 is
            ``charset[c - 1]``.
        confidences: (T,) the probability of that class, [0, 1].
        charset: the characters that the model was trained on, in training order.

    Returns:
        The characters in reading order; empty when every step is blank or there is none.

    Raises:
        ValueError: the lengths differ, or a class is outside the charset.

    Source:
        Graves et al. 2006, "Connectionist Temporal Classification", section 3.2, best path
        decoding.
    """
    if classes.ndim != 1 or classes.shape != confidences.shape:
        raise ValueError(f"expected (T,) twice, got {classes.shape} and {confidences.shape}")
    if classes.size == 0:
        return ()
    if int(classes.min()) < 0 or int(classes.max()) > len(charset):
        raise ValueError(f"a class is outside the {len(charset)} characters of the charset")
    starts = np.flatnonzero(np.r_[True, classes[1:] != classes[:-1]])
    stops = np.r_[starts[1:], classes.size]
    kept = classes[starts] != BLANK
    return tuple(
        DecodedCharacter(
            text=charset[int(classes[start]) - 1],
            step_start=int(start),
            step_stop=int(stop),
            confidence=float(confidences[start]),
        )
        for start, stop in zip(starts[kept], stops[kept], strict=True)
    )


def mean_confidence(confidences: Sequence[float]) -> float:
    """Return the mean of the kept steps' probabilities, 0.0 for an empty line."""
    if not confidences:
        return 0.0
    return float(np.mean(np.asarray(confidences, dtype=np.float64)))
