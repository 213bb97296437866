"""Words of a text line and where they stand, from the places of its characters.

A recognizer's output steps mark the middle of a letter, not its edges, so edges are put half way
between neighbors. A word is what stands between spaces; Chinese and Japanese, which write none,
give a word per character, because any longer cut would be a guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from workers.ocr.long_lines import PlacedCharacter
from workers.ocr.scripts import is_spaced_script


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """One word; ``start`` and ``stop`` are fractions of its line's width in [0, 1]."""

    text: str
    start: float
    stop: float


def place_words(
    characters: Sequence[PlacedCharacter], crop_width_px: int
) -> tuple[PlacedWord, ...]:
    """Group a line's characters into words.

    Args:
        characters: in reading order, crop pixels.
        crop_width_px: of the line's crop, without padding.

    Returns:
        Words in reading order, none of them empty; neighbors may touch but not overlap.
    """
    words: list[PlacedWord] = []
    pitch_px = _pitch_px(characters, crop_width_px)
    for first, stop in _word_ranges(characters):
        before = characters[first - 1].center_px if first > 0 else -np.inf
        after = characters[stop].center_px if stop < len(characters) else np.inf
        left, right = characters[first].center_px, characters[stop - 1].center_px
        start_px = max(left - pitch_px / 2, (before + left) / 2, 0.0)
        stop_px = min(right + pitch_px / 2, (right + after) / 2, float(crop_width_px))
        text = "".join(character.text for character in characters[first:stop])
        words.append(_placed(text, start_px / crop_width_px, stop_px / crop_width_px))
    return tuple(words)


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


def _pitch_px(characters: Sequence[PlacedCharacter], crop_width_px: int) -> float:
    """Return the usual distance between two characters' centers."""
    distances = [
        right.center_px - left.center_px
        for left, right in pairwise(characters)
        if not (left.text.isspace() or right.text.isspace())
    ]
    return float(np.median(distances)) if distances else crop_width_px / max(len(characters), 1)


def _placed(text: str, start: float, stop: float) -> PlacedWord:
    """Keep a word's range inside the line and at least a thousandth wide."""
    least = 0.001
    start = min(max(start, 0.0), 1.0 - least)
    return PlacedWord(text, start, min(max(stop, start + least), 1.0))
