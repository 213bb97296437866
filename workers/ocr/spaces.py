"""Spaces that recognition lost: put back where the ink leaves as much room as at known spaces.

Few are lost, most of them after a bullet. Only before a letter or a digit: marks stand apart in
old print and in formulas without a space being meant.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.ctc import SPACE
from workers.ocr.ink import widest_blank
from workers.ocr.long_lines import PlacedCharacter
from workers.ocr.scripts import is_spaced_script

# A line shows how wide its spaces are when it has so many, …
_MIN_KNOWN_SPACES: Final = 2
# … and none is this narrow, in crop pixels.
_MIN_SPACE_PX: Final = 8.0
# Room this much wider than the line's usual space is one.
_SURE_SPACES: Final = 1.1
# No space belongs after these, however much room there is; a straight quotation mark may open.
_NO_SPACE_AFTER: Final = frozenset("([{'\u2018\u201c\"-")


def restore_spaces(
    characters: Sequence[PlacedCharacter], is_blank: NDArray[np.bool_]
) -> tuple[PlacedCharacter, ...]:
    """Put lost spaces back into a line.

    Args:
        characters: in reading order, crop pixels.
        is_blank: (W,) which columns of the line's crop, without padding, hold no ink.

    Returns:
        The characters with the spaces that were missing; the same where the line does not show
        how wide its spaces are.
    """
    known = [
        _gap_px(characters[position - 1], characters[position + 1], is_blank)
        for position in range(1, len(characters) - 1)
        if characters[position].text == SPACE
    ]
    if len(known) < _MIN_KNOWN_SPACES:
        return tuple(characters)
    least_px = max(_MIN_SPACE_PX, _SURE_SPACES * float(np.median(known)))
    restored = list(characters[:1])
    for left, right in pairwise(characters):
        if _may_be_apart(left.text, right.text) and _gap_px(left, right, is_blank) >= least_px:
            middle = (left.center_px + right.center_px) / 2
            confidence = min(left.confidence, right.confidence)
            restored.append(PlacedCharacter(SPACE, middle, middle, confidence))
        restored.append(right)
    return tuple(restored)


def _may_be_apart(left: str, right: str) -> bool:
    return (
        SPACE not in {left, right}
        and is_spaced_script(left)
        and is_spaced_script(right)
        and left not in _NO_SPACE_AFTER
        and right.isalnum()
        and not (left.isdigit() and right.isdigit())  # "1" has more room beside it than others
    )


def _gap_px(left: PlacedCharacter, right: PlacedCharacter, is_blank: NDArray[np.bool_]) -> int:
    blank = widest_blank(is_blank[round(left.center_px) : round(right.center_px) + 1])
    return 0 if blank is None else blank[1] - blank[0]
