"""How texts are compared: as the corpus asks for it."""

import unicodedata

import numpy as np


def normalized(text: str) -> str:
    """Fold what is not an error: forms of a character, white space, the long s of old print."""
    folded = unicodedata.normalize("NFKC", text.replace("\u017f", "s").replace("\u00ac", "-"))
    return " ".join(folded.split())


def character_error_rate(expected: str, actual: str) -> float:
    """Return edit distance over the expected length, after normalization; 0 is perfect."""
    wanted, read = normalized(expected), normalized(actual)
    return edit_distance(wanted, read) / max(len(wanted), 1)


def edit_distance(left: str, right: str) -> int:
    """Return the least number of insertions, deletions and replacements."""
    columns = np.array([ord(character) for character in right], dtype=np.int64)
    positions = np.arange(columns.size + 1)
    distances = positions.copy()
    for row, character in enumerate(left, start=1):
        replaced = distances[:-1] + (columns != ord(character))
        best = np.concatenate(([row], np.minimum(distances[1:] + 1, replaced)))
        # An insertion may follow any of the others: a running minimum along the row.
        distances = np.minimum.accumulate(best - positions) + positions
    return int(distances[-1])


def error_rate_without_spaces(expected: str, actual: str) -> float:
    """Return ``character_error_rate`` for scripts in which white space means nothing."""
    return character_error_rate("".join(expected.split()), "".join(actual.split()))
