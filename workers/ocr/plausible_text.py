"""Whether the characters that a file states can be what is printed.

A font without a table of its characters gives whatever the codes happen to be: symbols, another
alphabet, letters shifted by a constant. No dictionary is needed to see that.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from typing import Final

# Bullets and mathematical signs of symbol fonts lie in the private use area of sound documents.
_MAX_UNKNOWN_SHARE: Final = 0.05
_MIN_ALPHANUMERIC_SHARE: Final = 0.4
_MAX_MIXED_SHARE: Final = 0.1
_MAX_ODD_WORD_SHARE: Final = 0.4
_MIN_ODD_WORDS: Final = 10
# Of the letters of any language in Latin script between a third and a half are vowels.
_VOWEL_SHARES: Final = (0.2, 0.65)
_MIN_LATIN_LETTERS: Final = 120
_UNKNOWN_CATEGORIES: Final = frozenset({"Cc", "Cn", "Co", "Cs"})
# Leaders of a table of contents, and the lines of a form.
_LEADERS: Final = re.compile(r"([.\-_…·•*=])(\s*\1){3,}")
_ODD_WORD: Final = re.compile(r"\w[#$%&*+<=>^|~\"!?]\w|[a-z][A-Z0-9][a-z]|[A-Z][0-9][A-Z]")
# Where scripts begin, as far as they must be told apart; "" are letters that go with any.
_SCRIPT_STARTS: Final = (
    (0x0000, ""),
    (0x0041, "latin"),
    (0x0250, ""),
    (0x0370, "greek"),
    (0x0400, "cyrillic"),
    (0x0530, "armenian"),
    (0x0590, "hebrew"),
    (0x0600, "arabic"),
    (0x0780, "other"),
    (0x0900, "indic"),
    (0x0E00, "thai"),
    (0x0F00, "other"),
    (0x1100, "east asian"),
    (0x1200, "other"),
    (0x1E00, "latin"),
    (0x1F00, "greek"),
    (0x2000, ""),
    (0x2C60, "other"),
    (0x2E80, "east asian"),
    (0xA000, "other"),
    (0xAC00, "east asian"),
    (0xD7B0, ""),
    (0xF900, "east asian"),
    (0xFB00, "latin"),
    (0xFB1D, "hebrew"),
    (0xFB50, "arabic"),
    (0xFE20, ""),
    (0xFE70, "arabic"),
    (0xFEFF, ""),
    (0xFF21, "latin"),
    (0xFF65, "east asian"),
    (0xFFE0, ""),
    (0x10000, "other"),
    (0x1D400, ""),
    (0x1F000, ""),
    (0x20000, "east asian"),
    (0x40000, ""),
)
_STARTS: Final = tuple(start for start, _ in _SCRIPT_STARTS)


def has_unknown_characters(text: str) -> bool:
    """Whether too much of a text is U+FFFD, private use, unassigned or control."""
    characters = [character for character in text if not character.isspace()]
    unknown = sum(
        character == "\ufffd" or unicodedata.category(character) in _UNKNOWN_CATEGORIES
        for character in characters
    )
    return unknown > _MAX_UNKNOWN_SHARE * len(characters)


def is_plausible(text: str) -> bool:
    """Whether a text looks like writing of any language, code and tables included."""
    folded = unicodedata.normalize("NFKC", _LEADERS.sub(" ", text))
    characters = [character for character in folded if not character.isspace()]
    alphanumeric = sum(
        character.isalnum() or unicodedata.category(character).startswith("M")
        for character in characters
    )
    if alphanumeric < _MIN_ALPHANUMERIC_SHARE * len(characters):
        return False
    return not (_mixes_scripts(folded) or _has_odd_words(folded) or _lacks_vowels(folded))


def _mixes_scripts(text: str) -> bool:
    """Whether letters of two scripts stand side by side; Han and kana go with all others."""
    pairs = mixed = 0
    previous = ""
    for character in text:
        script = _script(character) if character.isalpha() else ""
        if previous and script:
            pairs += 1
            mixed += script != previous and "east asian" not in {script, previous}
        previous = script
    return mixed > _MAX_MIXED_SHARE * pairs


def _script(letter: str) -> str:
    return _SCRIPT_STARTS[bisect_right(_STARTS, ord(letter)) - 1][1]


def _has_odd_words(text: str) -> bool:
    words = [word for word in text.split() if len(word) > 3 and word.isascii()]  # noqa: PLR2004 - short ones say nothing
    odd = sum(_ODD_WORD.search(word) is not None for word in words)
    return len(words) >= _MIN_ODD_WORDS and odd > _MAX_ODD_WORD_SHARE * len(words)


def _lacks_vowels(text: str) -> bool:
    letters = Counter(
        unicodedata.normalize("NFD", character)[0].lower()
        for character in text
        if character.isalpha() and _script(character) == "latin"
    )
    count = letters.total()
    if count < _MIN_LATIN_LETTERS:
        return False
    vowels = sum(letters[vowel] for vowel in "aeiouy\u00f8\u00e6\u0153\u0131")
    low, high = _VOWEL_SHARES
    return not low <= vowels / count <= high
