"""Right-to-left text: from where characters stand on a line back to the order of reading.

Files place Arabic and Hebrew as they look. Which character is read after which follows from the
places: from the right, but for numbers and words of other scripts, which run from the left.
"""

import unicodedata
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

_RIGHT_TO_LEFT: Final = frozenset({"R", "AL"})
_LEFT_TO_RIGHT: Final = frozenset({"L", "EN", "AN"})
_ALEFS: Final = "\u0622\u0623\u0625\u0627"
_LAM: Final = "\u0644"
# The second part of a ligature has no width of its own.
_NO_WIDTH: Final = 0.05


class Placed(Protocol):
    """A character with its place along a horizontal line."""

    @property
    def text(self) -> str: ...

    @property
    def x_min(self) -> float: ...

    @property
    def x_max(self) -> float: ...


_Character = TypeVar("_Character", bound=Placed)


def is_right_to_left(text: str) -> bool:
    """Whether most letters of a text are read from the right."""
    if text.isascii():
        return False
    classes = [unicodedata.bidirectional(character) for character in text]
    rightwards = sum(each == "L" for each in classes)
    return sum(each in _RIGHT_TO_LEFT for each in classes) > rightwards


def lam_alef_mended(characters: Sequence[_Character]) -> list[_Character]:
    """Put lam before alef where one glyph shows both.

    A program that turns a line around turns the letters of this ligature around too, so that
    "al-" becomes "la-". The alef is known by having no width: the glyph is the lam's.
    """
    mended = list(characters)
    index = 0
    while index < len(mended) - 1:
        first, second = mended[index], mended[index + 1]
        if (
            first.text in _ALEFS
            and second.text == _LAM
            and first.x_max - first.x_min < _NO_WIDTH * (second.x_max - second.x_min)
        ):
            mended[index], mended[index + 1] = second, first
            index += 1  # another lam may follow, to which this alef does not belong
        index += 1
    return mended


def reading_sequence(characters: Sequence[_Character]) -> list[_Character]:
    """Order the characters of a line that is read from the right.

    Args:
        characters: of one line, in any order; those of one ligature and marks on a letter follow
            each other.

    Returns:
        All of them in reading order, without spaces at the ends.
    """
    clusters = _clusters(characters)
    clusters.sort(key=lambda cluster: -(cluster[0].x_min + cluster[0].x_max))
    ordered: list[list[_Character]] = []
    start = 0
    while start < len(clusters):
        stop = _end_of_run(clusters, start)
        run = clusters[start:stop]
        ordered.extend(reversed(run) if stop - start > 1 else run)
        start = stop
    sequence = [character for cluster in ordered for character in cluster]
    while sequence and sequence[0].text.isspace():
        sequence.pop(0)
    while sequence and sequence[-1].text.isspace():
        sequence.pop()
    return sequence


def _clusters(characters: Sequence[_Character]) -> list[list[_Character]]:
    """Group what must stay together: a base with its marks, the parts of a ligature."""
    clusters: list[list[_Character]] = []
    for character in characters:
        is_mark = unicodedata.category(character.text[0]).startswith("M")
        has_width = character.x_max - character.x_min > 0
        if clusters and (is_mark or not has_width):
            clusters[-1].append(character)
        else:
            clusters.append([character])
    return clusters


def _end_of_run(clusters: Sequence[Sequence[Placed]], start: int) -> int:
    """Return where the run that reads from the left and begins here ends; one more for no run.

    Neutral characters between two left-to-right ones belong to the run, others do not.
    """
    if not _has_class(clusters[start], _LEFT_TO_RIGHT):
        return start + 1
    stop = start + 1
    for index in range(start + 1, len(clusters)):
        if _has_class(clusters[index], _LEFT_TO_RIGHT):
            stop = index + 1
        elif _has_class(clusters[index], _RIGHT_TO_LEFT):
            break
    return stop


def _has_class(cluster: Sequence[Placed], classes: frozenset[str]) -> bool:
    return unicodedata.bidirectional(cluster[0].text[0]) in classes
