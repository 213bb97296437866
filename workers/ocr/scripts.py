"""What has to be known about writing systems."""

from typing import Final

# Blocks whose text is written without spaces between words, as (first, last) code points:
# CJK symbols, kana, ideographs with their extensions, compatibility and full-width forms.
_UNSPACED_RANGES: Final = (
    (0x2E80, 0x2FDF),
    (0x3000, 0x30FF),
    (0x3100, 0x312F),
    (0x31A0, 0x31FF),
    (0x3200, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE4F),
    (0xFF00, 0xFFEF),
    (0x20000, 0x3FFFF),
)


def is_spaced_script(character: str) -> bool:
    """Tell whether words around this character are set apart by spaces.

    True for Latin, Cyrillic, Greek, Hangul, digits and ASCII marks; False for Chinese and
    Japanese.
    """
    code_point = ord(character)
    return not any(first <= code_point <= last for first, last in _UNSPACED_RANGES)
