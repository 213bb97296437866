"""Words of a text line and where they stand, from the places of its characters.

A recognizer's output steps mark the middle of a letter, not its edges, so edges are put where the
ink between two words ends. A word is what stands between spaces; Chinese and Japanese, which write
none, give a word per character, because any longer cut would be a guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from workers.ocr.ink import widest_blank
from workers.ocr.long_lines import PlacedCharacter
from workers.ocr.scripts import is_spaced_script


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """One word; ``start`` and ``stop`` are fractions of its line's width in [0, 1]."""

    text: str
    start: float
    stop: float


def place_words(
    characters: Sequence[PlacedCharacter], is_blank: NDArray[np.bool_]
) -> tuple[PlacedWord, ...]:
    """Group a line's characters into words.

    Args:
        characters: in reading order, crop pixels.
        is_blank: (W,) which columns of the line's crop, without padding, hold no ink.

    Returns:
        Words in reading order, none of them empty; neighbors may touch but not overlap.
    """
    width_px = is_blank.size
    ranges = _word_ranges(characters)
    centers = [character.center_px for character in characters]
    edges_px = [
        _outer_edge(centers, is_blank, at_start=True),
        *(
            edge
            for (_, left_stop), (right_start, _) in pairwise(ranges)
            for edge in _edges_between(centers[left_stop - 1], centers[right_start], is_blank)
        ),
        _outer_edge(centers, is_blank, at_start=False),
    ]
    return tuple(
        _placed(
            "".join(character.text for character in characters[start:stop]),
            edges_px[2 * position] / width_px,
            edges_px[2 * position + 1] / width_px,
        )
        for position, (start, stop) in enumerate(ranges)
    )


def _word_ranges(characters: Sequence[PlacedCharacter]) -> list[tuple[int, int]]:
    """Return the half-open index ranges of the words."""
    ranges: list[tuple[int, int]] = []
    start: int | None = None
    for index, character in enumerate(characters):
        is_space = character.text.isspace()
        stands_alone = not is_spaced_script(character.text)
        if (is_space or stands_alone) and start is not None:
            ranges.append((start, index))
            start = None
        if is_space:
            continue
        if stands_alone:
            ranges.append((index, index + 1))
        elif start is None:
            start = index
    if start is not None:
        ranges.append((start, len(characters)))
    return ranges


def _edges_between(
    left_px: float, right_px: float, is_blank: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return where the left word ends and the right one begins.

    That is the widest blank between the middles of their nearest letters; where the letters
    touch, it is half way.
    """
    first, stop = round(left_px), round(right_px) + 1
    blank = widest_blank(is_blank[first:stop])
    if blank is None:
        middle = (left_px + right_px) / 2
        return middle, middle
    return float(first + blank[0]), float(first + blank[1])


def _outer_edge(
    centers_px: Sequence[float], is_blank: NDArray[np.bool_], *, at_start: bool
) -> float:
    """Return where the ink of a line's first letter begins, or that of its last one ends."""
    ink = np.flatnonzero(~is_blank)
    if ink.size == 0 or not centers_px:
        return 0.0 if at_start else float(is_blank.size)
    if at_start:
        return min(float(ink[0]), centers_px[0])
    return max(float(ink[-1] + 1), centers_px[-1])


def _placed(text: str, start: float, stop: float) -> PlacedWord:
    """Keep a word's range inside the line and at least a thousandth wide."""
    least = 0.001
    start = min(max(start, 0.0), 1.0 - least)
    return PlacedWord(text, start, min(max(stop, start + least), 1.0))
