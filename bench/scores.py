"""How a text that was read is compared with the true one: with reading order, and without."""

import unicodedata
from collections import Counter
from dataclasses import dataclass

import numpy as np

# Languages that put no spaces between words: white space is dropped, and F1 counts characters.
_UNSPACED = {"ja", "zh"}
# Forms of 18th-century print that are no errors: the long s, and the not sign as a hyphen.
_OLD_FORMS = str.maketrans({"\u017f": "s", "\u00ac": "-"})


@dataclass(frozen=True, slots=True)
class Score:
    """How well a document was read.

    Attributes:
        cer: edit distance over the true length; 0 is perfect, and it may exceed 1.
        f1: of the words (characters where no spaces are), as a multiset: order does not count.
    """

    cer: float
    f1: float


def score(expected: str, actual: str, language: str) -> Score:
    """Compare two texts as the corpus asks for it: after NFKC, white space folded or dropped."""
    wanted, read = (normalized(text, language) for text in (expected, actual))
    return Score(
        cer=edit_distance(wanted, read) / max(len(wanted), 1),
        f1=_f1(_units(wanted, language), _units(read, language)),
    )


def normalized(text: str, language: str) -> str:
    """Fold what is not an error."""
    folded = unicodedata.normalize("NFKC", text.translate(_OLD_FORMS))
    return ("" if language in _UNSPACED else " ").join(folded.split())


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


def _units(text: str, language: str) -> Counter[str]:
    return Counter(text if language in _UNSPACED else text.split())


def _f1(wanted: Counter[str], read: Counter[str]) -> float:
    total = wanted.total() + read.total()
    return 2 * (wanted & read).total() / total if total else 1.0
